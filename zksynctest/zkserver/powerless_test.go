package zkserver

import (
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"sync"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/journal"
)

// errPower is the error of all operations after the loss of power.
var errPower = errors.New("no power")

// powerless is a set of files in memory that loses power after a number of operations. After that,
// data that was not synced is present, missing, or present in part, sector by sector; the same
// holds for the names in a directory that was not synced.
type powerless struct {
	mu    sync.Mutex
	rng   *rand.Rand
	left  int                 // operations until the loss of power; -1 for never
	files map[string][]*inode // versions by name: the last is the present one, nil if the name is missing; a crash may bring earlier ones back
	locks map[*inode]*handle
}

// inode is the contents of a file.
type inode struct {
	b      []byte
	synced []byte
	// dirty has the sectors that were written since the last sync.
	dirty map[int]bool
}

// handle is an open file.
type handle struct {
	p      *powerless
	i      *inode
	at     int
	closed bool
}

func newPowerless(seed uint64) *powerless {
	return &powerless{
		rng: rand.New(rand.NewPCG(seed, 0)), left: -1,
		files: map[string][]*inode{}, locks: map[*inode]*handle{},
	}
}

// spend counts an operation, which may be the last. The caller holds mu.
func (p *powerless) spend() error {
	if p.left == 0 {
		return errPower
	}
	if p.left > 0 {
		p.left--
	}
	return nil
}

// cut makes the power fail after n more operations.
func (p *powerless) cut(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = n
}

// reboot returns the files that are present after the power has come back.
func (p *powerless) reboot() *powerless {
	p.mu.Lock()
	defer p.mu.Unlock()
	after := &powerless{rng: p.rng, left: -1, files: map[string][]*inode{}, locks: map[*inode]*handle{}}
	survived := map[*inode]*inode{}
	for path, states := range p.files {
		i := states[p.rng.IntN(len(states))]
		if i == nil {
			continue
		}
		if survived[i] == nil {
			survived[i] = i.survive(p.rng)
		}
		after.files[path] = []*inode{survived[i]}
	}
	return after
}

// survive returns the contents of a file after a loss of power: any subset of the unsynced sectors,
// and any length between the synced length and the present length.
func (i *inode) survive(rng *rand.Rand) *inode {
	b := append([]byte(nil), i.synced...)
	mode := rng.IntN(4)
	for sector := range i.dirty {
		if mode == 0 || mode != 1 && rng.IntN(2) == 0 {
			continue
		}
		from := sector * journal.DiskSector
		to := min(from+journal.DiskSector, len(i.b))
		if from >= to {
			continue
		}
		if len(b) < to {
			b = append(b, make([]byte, to-len(b))...)
		}
		copy(b[from:to], i.b[from:to])
	}
	short, long := min(len(i.synced), len(i.b)), max(len(i.synced), len(i.b))
	size := short + rng.IntN(long-short+1)
	switch rng.IntN(3) {
	case 0:
		size = len(i.b)
	case 1:
		size = min(max(len(b), short), long)
	}
	if size <= len(b) {
		b = b[:size]
	} else {
		b = append(b, make([]byte, size-len(b))...)
	}
	return &inode{b: b, synced: append([]byte(nil), b...), dirty: map[int]bool{}}
}

func (p *powerless) present(path string) *inode {
	if states := p.files[path]; len(states) > 0 {
		return states[len(states)-1]
	}
	return nil
}

func (p *powerless) put(path string, i *inode) {
	if p.files[path] == nil {
		p.files[path] = []*inode{nil}
	}
	p.files[path] = append(p.files[path], i)
}

func (p *powerless) Open(path string, fresh bool) (journal.File, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.spend(); err != nil {
		return nil, err
	}
	i := p.present(path)
	if i == nil || fresh {
		i = &inode{dirty: map[int]bool{}}
		p.put(path, i)
	}
	return &handle{p: p, i: i}, nil
}

func (p *powerless) Lock(f journal.File) error {
	h := f.(*handle)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.locks[h.i] != nil {
		return journal.ErrInUse
	}
	p.locks[h.i] = h
	return nil
}

func (p *powerless) Target(path string) (string, error) { return path, nil }

func (p *powerless) Names(path string, f journal.File) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.present(path) == f.(*handle).i, nil
}

func (p *powerless) Rename(from, to string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.spend(); err != nil {
		return err
	}
	p.put(to, p.present(from))
	p.put(from, nil)
	return nil
}

func (p *powerless) SyncDir(dir string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.spend(); err != nil {
		return err
	}
	for path, states := range p.files {
		if filepath.Dir(path) == dir {
			p.files[path] = states[len(states)-1:]
		}
	}
	return nil
}

func (p *powerless) HasNames(f journal.File) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for path := range p.files {
		if p.present(path) == f.(*handle).i {
			return true
		}
	}
	return false
}

func (h *handle) Read(b []byte) (int, error) {
	h.p.mu.Lock()
	defer h.p.mu.Unlock()
	if h.at >= len(h.i.b) {
		return 0, io.EOF
	}
	n := copy(b, h.i.b[h.at:])
	h.at += n
	return n, nil
}

func (h *handle) Write(b []byte) (int, error) {
	h.p.mu.Lock()
	defer h.p.mu.Unlock()
	err := h.p.spend()
	if err != nil { // a part of the write may have reached the disk
		b = b[:h.p.rng.IntN(len(b)+1)]
	}
	if end := h.at + len(b); end > len(h.i.b) {
		h.i.b = append(h.i.b, make([]byte, end-len(h.i.b))...)
	}
	copy(h.i.b[h.at:], b)
	for s := h.at / journal.DiskSector; s*journal.DiskSector < h.at+len(b); s++ {
		h.i.dirty[s] = true
	}
	h.at += len(b)
	return len(b), err
}

func (h *handle) Seek(offset int64, _ int) (int64, error) {
	h.at = int(offset)
	return offset, nil
}

func (h *handle) Truncate(size int64) error {
	h.p.mu.Lock()
	defer h.p.mu.Unlock()
	if err := h.p.spend(); err != nil {
		return err
	}
	h.i.b = h.i.b[:size:size]
	return nil
}

func (h *handle) Sync() error {
	h.p.mu.Lock()
	defer h.p.mu.Unlock()
	if err := h.p.spend(); err != nil {
		return err
	}
	h.i.synced, h.i.dirty = append([]byte(nil), h.i.b...), map[int]bool{}
	return nil
}

func (h *handle) Close() error {
	h.p.mu.Lock()
	defer h.p.mu.Unlock()
	if h.p.locks[h.i] == h {
		delete(h.p.locks, h.i)
	}
	h.closed = true
	return nil
}

// size is the fs.FileInfo of a regular file of this size.
type size struct {
	fs.FileInfo
	n int
}

func (s size) Size() int64       { return int64(s.n) }
func (s size) Mode() fs.FileMode { return 0o600 }

func (h *handle) Stat() (fs.FileInfo, error) {
	h.p.mu.Lock()
	defer h.p.mu.Unlock()
	return size{n: len(h.i.b)}, nil
}
