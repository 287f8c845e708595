package session

import (
	"context"
	"log/slog"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// WithSlog is like WithLogger, for a logger of log/slog. The last of the two options
// counts.
func WithSlog(log *slog.Logger) Option {
	return option(log != nil, "WithSlog", "the logger is nil", func(c *config) {
		c.log = zap.New(&slogCore{handler: log.Handler()}, zap.AddCaller())
	})
}

// A slogCore passes entries of zap to a handler of slog.
type slogCore struct {
	handler slog.Handler
}

// slogLevel returns the level of slog, whose levels are four apart, for Debug, Info, Warn and
// Error. Levels beyond these become Debug or Error.
func slogLevel(level zapcore.Level) slog.Level {
	return slog.Level(4 * min(max(level, zapcore.DebugLevel), zapcore.ErrorLevel))
}

func (c *slogCore) Enabled(level zapcore.Level) bool {
	return c.handler.Enabled(context.Background(), slogLevel(level))
}

func (c *slogCore) With(fields []zapcore.Field) zapcore.Core {
	return &slogCore{handler: c.handler.WithAttrs(slogAttrs(fields))}
}

func (c *slogCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(entry.Level) {
		return checked.AddCore(entry, c)
	}
	return checked
}

func (c *slogCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	// A handler finds the file and the line by the program counter.
	var pc uintptr
	if entry.Caller.Defined {
		pc = entry.Caller.PC
	}
	record := slog.NewRecord(entry.Time, slogLevel(entry.Level), entry.Message, pc)
	record.AddAttrs(slogAttrs(fields)...)
	return c.handler.Handle(context.Background(), record)
}

func (c *slogCore) Sync() error { return nil }

// slogAttrs converts fields in their order. zap encodes each field, so that every kind of
// field keeps its value.
func slogAttrs(fields []zapcore.Field) []slog.Attr {
	attrs := make([]slog.Attr, 0, len(fields))
	for _, f := range fields {
		values := zapcore.NewMapObjectEncoder()
		f.AddTo(values)
		if v, ok := values.Fields[f.Key]; ok {
			attrs = append(attrs, slog.Any(f.Key, v))
		}
	}
	return attrs
}
