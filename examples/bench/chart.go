package main

import (
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

var colours = map[string]color.Color{
	bare:    color.RGBA{0x9e, 0x9e, 0x9e, 0xff},
	same:    color.RGBA{0x5f, 0x5f, 0x5f, 0xff},
	ours:    color.RGBA{0x1b, 0x7f, 0x5c, 0xff},
	goZK:    color.RGBA{0x4c, 0x78, 0xa8, 0xff},
	curator: color.RGBA{0xe4, 0x57, 0x56, 0xff},
	kazoo:   color.RGBA{0xf2, 0xa0, 0x3d, 0xff},
	etcd:    color.RGBA{0x8e, 0x6c, 0xb0, 0xff},
	redis:   color.RGBA{0x80, 0x5a, 0x3b, 0xff},
}

// drawChart draws, for each row with other contenders, the ratio of their times or
// bytes to ours, on a logarithmic axis.
func drawChart(path string, results []result) error {
	// The letters of this font are wider than a browser's, so the text fits where the
	// browser lacks the font.
	plot.DefaultFont.Variant = "Sans"
	p := plot.New()
	p.Title.Text = "What others take, ours = 1 (less is better)"
	p.X.Label.Text = "times as much as zksync, logarithmic"
	p.X.Scale = plot.LogScale{}
	p.X.Tick.Marker = plot.LogTicks{Prec: -1}
	p.Legend.Top, p.Legend.Left = true, false
	p.Legend.Padding, p.Legend.ThumbnailWidth = vg.Points(3), vg.Points(30)

	var titles []string
	points := make(map[string]plotter.XYs)
	least, most := 1.0, 1.0
	for i := len(results) - 1; i >= 0; i-- { // the first row is drawn on top
		r := results[i]
		mine, ok := r.of(ours)
		if !ok || mine.Median <= 0 || len(r.Measures) < 2 {
			continue
		}
		y := float64(len(titles))
		titles = append(titles, r.Title)
		for _, m := range r.Measures {
			if m.Missing == "" && m.Median > 0 {
				x := m.Median / mine.Median
				points[m.Contender] = append(points[m.Contender], plotter.XY{X: x, Y: y})
				least, most = math.Min(least, x), math.Max(most, x)
			}
		}
	}
	if len(titles) == 0 {
		return nil
	}
	p.Add(plotter.NewGrid())
	for _, name := range []string{bare, same, goZK, curator, kazoo, etcd, redis, ours} {
		if len(points[name]) == 0 {
			continue
		}
		s, err := plotter.NewScatter(points[name])
		if err != nil {
			return err
		}
		s.GlyphStyle.Color, s.GlyphStyle.Radius, s.GlyphStyle.Shape = colours[name], vg.Points(4), draw.CircleGlyph{}
		p.Add(s)
		p.Legend.Add(name, s)
	}
	p.NominalY(titles...)
	p.X.Min, p.X.Max = least/1.5, most*8 // with room for the legend
	p.Y.Min, p.Y.Max = -0.5, float64(len(titles))-0.5
	return p.Save(24*vg.Centimeter, vg.Length(len(titles))*0.9*vg.Centimeter+3*vg.Centimeter, path)
}
