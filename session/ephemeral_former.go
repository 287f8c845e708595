package session

import "slices"

// maxFormer is how many lost sessions are remembered: more than can have
// znodes left.
const maxFormer = 64

// retire remembers a session that was lost.
func (m *Manager) retire(s *Session) {
	if !s.known.Load() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.former = append(m.former, s.id)
	m.former = m.former[max(0, len(m.former)-maxFormer):]
}

func (m *Manager) isFormer(id int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Contains(m.former, id)
}
