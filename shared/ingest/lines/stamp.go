package lines

// Stamp reads a date and time of day at the start of s, such as
// "2024-03-01 12:00:07,123" or "2024/03/01T12:00:07.5", in nanoseconds since
// 1970. Time zones are not looked at: stamps are for distances.
func Stamp(s string) (int64, bool) {
	const shape = "dddd-dd-dd dd:dd:dd"
	if len(s) < len(shape) {
		return 0, false
	}
	for i := range len(shape) {
		c := s[i]
		switch shape[i] {
		case 'd':
			if !IsDigit(c) {
				return 0, false
			}
		case '-':
			if c != '-' && c != '/' {
				return 0, false
			}
		case ' ':
			if c != ' ' && c != 'T' && c != '_' {
				return 0, false
			}
		default:
			if c != ':' {
				return 0, false
			}
		}
	}
	two := func(at int) int64 { return int64(s[at]-'0')*10 + int64(s[at+1]-'0') }
	month, day, hour, minute, second := two(5), two(8), two(11), two(14), two(17)
	if month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 || second > 60 {
		return 0, false
	}
	t := (((days(two(0)*100+two(2), month, day)*24+hour)*60+minute)*60 + second) * 1e9
	if rest := s[len(shape):]; len(rest) > 1 && (rest[0] == '.' || rest[0] == ',') {
		for i, scale := 1, int64(1e8); i < len(rest) && scale > 0 && IsDigit(rest[i]); i++ {
			t += int64(rest[i]-'0') * scale
			scale /= 10
		}
	}
	return t, t >= 0 && s[:2] != "00" && two(0) < 22 // within what 64 bits hold
}

// days are those from the first of 1970 to a date of the Gregorian calendar. The
// year begins with March, so that the leap day is its last.
func days(year, month, day int64) int64 {
	if month <= 2 {
		year--
		month += 12
	}
	return 365*year + year/4 - year/100 + year/400 + (153*(month-3)+2)/5 + day - 1 - 719468
}

// FindStamp finds the first stamp within the first bytes of a line, before
// which a prefix may stand.
func FindStamp(s string) (int64, bool) {
	const within = 64
	for i := 0; i < len(s) && i < within; i++ {
		if IsDigit(s[i]) && (i == 0 || !IsDigit(s[i-1])) {
			if t, ok := Stamp(s[i:]); ok {
				return t, true
			}
		}
	}
	return 0, false
}
