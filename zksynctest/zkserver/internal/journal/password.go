package journal

// PasswordOf is the password that a real server derives from the id of a session with
// java.util.Random. Sessions in a data file of the first version have it.
func PasswordOf(id int64) (p [16]byte) {
	const (
		secret     = 0xB3415C00
		multiplier = 0x5DEECE66D
		mask       = 1<<48 - 1
	)
	state := (uint64(id) ^ secret ^ multiplier) & mask
	for i := 0; i < len(p); i += 4 {
		state = (state*multiplier + 0xB) & mask
		v := uint32(state >> 16)
		p[i], p[i+1], p[i+2], p[i+3] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
	}
	return p
}
