package gcslock

import (
	"math/big"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// rfc3339 is the grammar of RFC 3339, section 5.6, but for the leap second,
// which no instant of Go's is.
var rfc3339 = regexp.MustCompile(
	`^(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(\.\d+)?(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))$`)

// instant is the text's instant in nanoseconds since 1970, by the calendar
// alone; false where the text is no RFC 3339.
func instant(text string) (*big.Int, bool) {
	m := rfc3339.FindStringSubmatch(text)
	if m == nil {
		return nil, false
	}
	number := func(i int) int64 { n, _ := strconv.ParseInt(m[i], 10, 64); return n }
	year, month, day := number(1), number(2), number(3)
	leap := func(y int64) bool { return y%4 == 0 && (y%100 != 0 || y%400 == 0) }
	days := []int64{0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
	if leap(year) {
		days[2] = 29
	}
	if day > days[month] {
		return nil, false
	}
	n := day - 1
	for i := int64(1); i < month; i++ {
		n += days[i]
	}
	for y := min(year, 1970); y < max(year, 1970); y++ {
		length := int64(365)
		if leap(y) {
			length++
		}
		if year < 1970 {
			length = -length
		}
		n += length
	}
	seconds := ((n*24+number(4))*60+number(5))*60 + number(6)
	if offset := number(9)*3600 + number(10)*60; m[8] == "-" {
		seconds += offset
	} else {
		seconds -= offset
	}
	fraction := int64(0)
	if m[7] != "" {
		fraction, _ = strconv.ParseInt((m[7] + "000000000")[1:10], 10, 64)
	}
	return plus(new(big.Int).Mul(big.NewInt(seconds), big.NewInt(1e9)), big.NewInt(fraction)), true
}

// FuzzTimestamp: every RFC 3339 time is read as the instant that it is, from the
// year 0 to 9999 in UTC. What is read survives being written.
func FuzzTimestamp(f *testing.F) {
	for _, text := range []string{
		"2026-11-30T10:00:20.123456789Z", "2026-11-30T10:00:20Z", "2026-11-30T10:00:20.1234567899Z", "2026-11-30T10:00:20,5Z",
		"0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z", "0000-01-01T00:00:00+00:01",
		"9999-12-31T23:59:59-00:01", "1970-01-01T00:00:00-23:59", "2026-11-30T10:00:00+24:00", "2026-11-30T10:00:00+00:60",
		"2024-02-29T00:00:00Z", "2023-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2000-02-29T23:59:59+23:59", "2026-06-30T23:59:60Z",
		"2026-11-30 10:00:00Z", "2026-11-30t10:00:00z", "10000-01-01T00:00:00Z", "-001-01-01T00:00:00Z", "2026-11-30T10:00:00", "", "now",
	} {
		f.Add(text)
	}
	first, last := since1970(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)), since1970(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))
	f.Fuzz(func(t *testing.T, text string) {
		got := readRecord(map[string]string{"expires-at": text}).expires
		want, ok := instant(text)
		switch {
		case ok && (want.Cmp(first) < 0 || want.Cmp(last) >= 0):
			if !got.IsZero() {
				t.Errorf("%q is read as %v, which nobody can write", text, got)
			}
		case ok && since1970(got).Cmp(want) != 0:
			t.Errorf("%q is read as %v, want %v ns since 1970", text, got, want)
		}
		if again := parseTimestamp(timestamp(got)); !again.Equal(got) {
			t.Errorf("%q is read as %v, written and read as %v", text, got, again)
		}
	})
}

// duration is a Go duration's text in whole nanoseconds, and how many numbers
// it is made of, each of whose fractions may have been rounded.
func duration(text string) (n *big.Int, parts int, ok bool) {
	if !regexp.MustCompile(`^\+?((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+$`).MatchString(text) {
		return nil, 0, false
	}
	units := map[string]int64{"ns": 1, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9}
	sum := new(big.Rat)
	for _, m := range regexp.MustCompile(`([\d.]+)(ns|us|µs|μs|ms|s|m|h)`).FindAllStringSubmatch(text, -1) {
		value, valid := new(big.Rat).SetString(m[1])
		if !valid {
			return nil, 0, false
		}
		sum.Add(sum, value.Mul(value, new(big.Rat).SetInt64(units[m[2]])))
		parts++
	}
	return new(big.Int).Quo(sum.Num(), sum.Denom()), parts, true
}

// FuzzDuration: a ttl counts as what it says, from 3 s to 24 h; one that is no
// positive duration, or beyond what a duration holds, counts as none.
func FuzzDuration(f *testing.F) {
	for _, text := range []string{
		"1m0s", "60s", "3s", "2.999999999s", "24h", "24h0m0.000000001s", "23h59m59.999999999s", "1ns", "0.9ns", "0s", "0", "-0s", "-1m", "+1m",
		"1.5h", ".5h", "1.h", "3.99999999999999999s", "1h1h", "1µs", "1μs", "9223372036854775807ns", "9223372036854775808ns", "2562047h47m16.854775807s",
		"2562048h", "99999999999999999999h", "1e3s", "0x10s", "1d", "1", "s", "", " 1m", "1m ", "1 m", "∞",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 2<<10 {
			t.Skip() // the oracle counts without bounds, and slowly
		}
		got := readRecord(map[string]string{"ttl": text}).ttl
		n, parts, ok := duration(text)
		switch {
		case got != 0 && (got < 3*time.Second || got > 24*time.Hour):
			t.Errorf("%q counts as %v", text, got)
		case got == 0 && ok && n.Sign() > 0 && n.Cmp(big.NewInt(1<<62)) < 0 && n.Cmp(big.NewInt(int64(parts))) > 0:
			t.Errorf("%q does not count", text)
		case got != 0 && !ok:
			t.Errorf("%q is no duration and counts as %v", text, got)
		case got != 0:
			rounding := big.NewInt(int64(parts))
			least := clamped(minus(n, rounding), 3*time.Second, 24*time.Hour)
			if most := clamped(plus(n, rounding), 3*time.Second, 24*time.Hour); nanos(got).Cmp(least) < 0 || nanos(got).Cmp(most) > 0 {
				t.Errorf("%q counts as %v, want %v to %v ns", text, got, least, most)
			}
		}
	})
}
