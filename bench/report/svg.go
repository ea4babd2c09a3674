package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// bars are one group of a chart, a bar for each series.
type bars struct {
	title  string
	values []float64
}

const (
	chartWidth = 760
	plotLeft   = 250 // of it the titles have the left
	plotRight  = 690 // and the numbers beside the bars the right
	plotTop    = 70
	barHeight  = 11
	groupSpace = 12
)

// style has colours that are told apart on both backgrounds, also by those who see
// no red and green. It is the picture's own: it loads nothing.
const style = `<style>
text { font: 12px sans-serif; fill: #1f2328 } .title { font-size: 15px; font-weight: bold } .number { font-size: 10px }
.end { text-anchor: end } .middle { text-anchor: middle }
.ground { fill: #ffffff } .grid { stroke: #d1d9e0 } .mark { stroke: #1f2328; stroke-dasharray: 4 3 }
.s0 { fill: #0072b2 } .s1 { fill: #e69f00 } .s2 { fill: #009e73 } .s3 { fill: #a45a86 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .ground { fill: #0d1117 } .grid { stroke: #3d444d } .mark { stroke: #e6edf3 }
.s0 { fill: #56b4e9 } .s3 { fill: #cc79a7 }
}
</style>
`

// svg draws the groups below each other, from left to right from 0.
func (c chart) svg(groups []bars) string {
	largest := c.mark
	for _, g := range groups {
		for _, v := range g.values {
			largest = max(largest, v)
		}
	}
	step := tick(largest)
	scale := (plotRight - plotLeft) / (math.Ceil(largest/step) * step)
	x := func(v float64) float64 { return plotLeft + max(0, v)*scale }
	groupHeight := len(c.series)*barHeight + groupSpace
	bottom := plotTop + len(groups)*groupHeight

	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="%s">`+"\n",
		chartWidth, bottom+50, html.EscapeString(c.title))
	b.WriteString(style)
	fmt.Fprintf(&b, `<rect class="ground" width="%d" height="%d"/>`+"\n", chartWidth, bottom+50)
	write := func(class string, x float64, y int, content string) {
		fmt.Fprintf(&b, `<text class="%s" x="%.1f" y="%d">%s</text>`+"\n", class, x, y, html.EscapeString(content))
	}
	line := func(class string, v float64) {
		fmt.Fprintf(&b, `<line class="%s" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`+"\n", class, x(v), plotTop-4, x(v), bottom)
	}
	write("title", 14, 24, c.title)
	c.legend(&b, write)
	for v := 0.0; x(v) < plotRight+1; v += step {
		line("grid", v)
		write("middle", x(v), bottom+16, number(v))
	}
	write("middle", (plotLeft+plotRight)/2, bottom+36, c.axis)
	for i, g := range groups {
		y := plotTop + i*groupHeight + groupSpace/2
		write("end", plotLeft-8, y+len(c.series)*barHeight/2+4, g.title)
		for j, v := range g.values {
			fmt.Fprintf(&b, `<rect class="s%d" x="%d" y="%d" width="%.1f" height="%d"/>`+"\n", j, plotLeft, y+j*barHeight, x(v)-plotLeft, barHeight-1)
			write("number", x(v)+4, y+j*barHeight+9, number(v))
		}
	}
	if c.mark > 0 {
		line("mark", c.mark)
		write("number", x(c.mark)+3, plotTop-6, c.markTitle)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// legend names the series, in a line under the title.
func (c chart) legend(b *strings.Builder, write func(class string, x float64, y int, content string)) {
	at := plotLeft
	for i, s := range c.series {
		fmt.Fprintf(b, `<rect class="s%d" x="%d" y="38" width="10" height="10"/>`+"\n", i, at)
		write("", float64(at+15), 48, s.title)
		at += 40 + 8*len(s.title)
	}
}

// tick is the step of an axis up to the value: 1, 2 or 5 times a power of ten, so
// that there are four to ten of them.
func tick(largest float64) float64 {
	if !(largest > 0) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(largest)))
	switch {
	case largest/power < 2:
		return power / 5
	case largest/power < 5:
		return power / 2
	}
	return power
}
