package trace

import "strconv"

// appendG writes f with so many significant digits, as C's %.*g does: Go's 'g'
// with a precision differs in that C drops trailing zeros and switches to an
// exponent below 1e-4 and of at least two digits.
func appendG(b []byte, f float64, digits, bits int) []byte {
	e := strconv.AppendFloat(nil, f, 'e', digits-1, bits)
	mark := len(e) - 1
	for e[mark] != 'e' {
		mark--
	}
	exp, _ := strconv.Atoi(string(e[mark+1:])) // written by AppendFloat just above
	if exp < -4 || exp >= digits {
		b = append(b, trimZeros(e[:mark])...)
		return append(b, e[mark:]...)
	}
	return append(b, trimZeros(strconv.AppendFloat(nil, f, 'f', digits-1-exp, bits))...)
}

// trimZeros drops the zeros at the end of a decimal fraction.
func trimZeros(s []byte) []byte {
	point := false
	for _, c := range s {
		point = point || c == '.'
	}
	if !point {
		return s
	}
	for s[len(s)-1] == '0' {
		s = s[:len(s)-1]
	}
	if s[len(s)-1] == '.' {
		s = s[:len(s)-1]
	}
	return s
}
