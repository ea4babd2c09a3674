package gcstest_test

import (
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"cloud.google.com/go/storage"

	"github.com/gcslock/gcslock/gcstest"
)

const wrong = 12345

var probes = []probe{
	{
		name: "create if absent, multipart",
		run: func(ctx context.Context, g *target) string {
			o := g.object("x").If(storage.Conditions{DoesNotExist: true})
			return said(attrsErr(create(ctx, o, "1")), attrsErr(create(ctx, o, "2")))
		},
		strict: "200 412",
	},
	{
		name: "create if absent, resumable",
		run: func(ctx context.Context, g *target) string {
			upload := func() error {
				w := g.object("x").If(storage.Conditions{DoesNotExist: true}).NewWriter(ctx)
				w.ChunkSize = 256 << 10
				_, err := io.WriteString(w, strings.Repeat("x", 300<<10))
				return errors.Join(err, w.Close())
			}
			return said(upload(), upload())
		},
		strict: "200 412",
	},
	{
		name: "create if absent, media",
		run: func(_ context.Context, g *target) string {
			url := g.url + "/upload/storage/v1/b/b/o?uploadType=media&name=x&ifGenerationMatch=0"
			return fmt.Sprint(
				send(g.t, g.rt, "POST", url, "1").status, " ",
				send(g.t, g.rt, "POST", url, "2").status)
		},
		strict: "200 412",
	},
	{
		name: "create over a version",
		run: func(ctx context.Context, g *target) string {
			a := g.create("x")
			return said(
				attrsErr(create(ctx, g.object("x").If(storage.Conditions{GenerationMatch: wrong}), "")),
				attrsErr(create(ctx, g.object("x").If(storage.Conditions{GenerationMatch: a.Generation}), "")),
				attrsErr(create(ctx, g.object("absent").If(storage.Conditions{GenerationMatch: wrong}), "")),
			)
		},
		strict: "412 200 412",
	},
	{
		name: "create over a metageneration",
		run: func(ctx context.Context, g *target) string {
			g.create("x")
			return said(attrsErr(create(ctx, g.object("x").If(storage.Conditions{MetagenerationMatch: wrong}), "")))
		},
		strict: "412", memory: "200", filesystem: "200",
	},
	{
		name: "50 creators, one winner",
		run: func(ctx context.Context, g *target) string {
			var won, lost atomic.Int32
			var wg sync.WaitGroup
			for range 50 {
				wg.Go(func() {
					_, err := create(ctx, g.object("x").If(storage.Conditions{DoesNotExist: true}), "")
					switch status(err) {
					case 200:
						won.Add(1)
					case 412:
						lost.Add(1)
					}
				})
			}
			wg.Wait()
			return fmt.Sprintf("%d won, %d lost", won.Load(), lost.Load())
		},
		strict: "1 won, 49 lost", concurrent: true,
	},
	{
		name: "update, wrong generation",
		run: func(ctx context.Context, g *target) string {
			g.create("x")
			o := g.object("x").If(storage.Conditions{GenerationMatch: wrong})
			return said(attrsErr(o.Update(ctx, set("a", "b"))))
		},
		strict: "412", memory: "200", filesystem: "200",
	},
	{
		name: "update, wrong metageneration",
		run: func(ctx context.Context, g *target) string {
			a := g.create("x")
			o := g.object("x").If(storage.Conditions{GenerationMatch: a.Generation, MetagenerationMatch: wrong})
			return said(attrsErr(o.Update(ctx, set("a", "b"))))
		},
		strict: "412", memory: "200", filesystem: "200",
	},
	{
		name: "update, wrong selector",
		run: func(ctx context.Context, g *target) string {
			g.create("x")
			return said(attrsErr(g.object("x").Generation(wrong).Update(ctx, set("a", "b"))))
		},
		strict: "404", memory: "200", filesystem: "200",
	},
	{
		name: "delete, wrong generation",
		run: func(ctx context.Context, g *target) string {
			g.create("x")
			return said(g.object("x").If(storage.Conditions{GenerationMatch: wrong}).Delete(ctx))
		},
		strict: "412", memory: "200", filesystem: "200",
	},
	{
		name: "delete, wrong metageneration",
		run: func(ctx context.Context, g *target) string {
			a := g.create("x")
			return said(g.object("x").Generation(a.Generation).
				If(storage.Conditions{GenerationMatch: a.Generation, MetagenerationMatch: wrong}).Delete(ctx))
		},
		strict: "412", memory: "200", filesystem: "200",
	},
	{
		name: "delete, wrong selector",
		run: func(ctx context.Context, g *target) string {
			g.create("x")
			return said(g.object("x").Generation(wrong).Delete(ctx))
		},
		strict: "404",
	},
	{
		name: "read, wrong versions",
		run: func(ctx context.Context, g *target) string {
			g.create("x")
			o := g.object("x")
			return said(
				attrsErr(o.If(storage.Conditions{GenerationMatch: wrong}).Attrs(ctx)),
				attrsErr(o.If(storage.Conditions{MetagenerationMatch: wrong}).Attrs(ctx)),
				attrsErr(o.Generation(wrong).Attrs(ctx)),
			)
		},
		strict: "412 412 404", memory: "200 200 404", filesystem: "200 200 404",
	},
	{
		name: "read if it has changed",
		run: func(ctx context.Context, g *target) string {
			a := g.create("x")
			o := g.object("x")
			return said(
				attrsErr(o.If(storage.Conditions{GenerationNotMatch: a.Generation}).Attrs(ctx)),
				attrsErr(o.If(storage.Conditions{MetagenerationNotMatch: 1}).Attrs(ctx)),
				attrsErr(o.If(storage.Conditions{GenerationNotMatch: wrong}).Attrs(ctx)),
			)
		},
		strict: "304 304 200", memory: "200 200 200", filesystem: "200 200 200",
	},
	{
		name: "read the content, wrong generation",
		run: func(ctx context.Context, g *target) string {
			g.create("x")
			_, err := g.object("x").If(storage.Conditions{GenerationMatch: wrong}).NewReader(ctx)
			return said(err)
		},
		strict: "412", memory: "200", filesystem: "200",
	},
	{
		name: "absent object",
		run: func(ctx context.Context, g *target) string {
			o := g.object("absent")
			return said(attrsErr(o.Attrs(ctx)), attrsErr(o.Update(ctx, set("a", "b"))), o.Delete(ctx),
				o.If(storage.Conditions{GenerationMatch: wrong, MetagenerationMatch: 1}).Delete(ctx))
		},
		strict: "404 404 404 404",
	},
	{
		name: "metageneration: created, in the update's reply, read",
		run: func(ctx context.Context, g *target) string {
			created := g.create("x")
			updated, err := g.object("x").Update(ctx, set("a", "b"))
			read, err2 := g.object("x").Attrs(ctx)
			if err := errors.Join(err, err2); err != nil {
				return err.Error()
			}
			return fmt.Sprint(created.Metageneration, updated.Metageneration, read.Metageneration)
		},
		strict: "1 2 2", memory: "1 0 1", filesystem: "1 0 1",
	},
	{
		name: "generation and updated after an update",
		run: func(ctx context.Context, g *target) string {
			created := g.create("x")
			_, err := g.object("x").Update(ctx, set("a", "b"))
			read, err2 := g.object("x").Attrs(ctx)
			if err := errors.Join(err, err2); err != nil {
				return err.Error()
			}
			return fmt.Sprintf("same generation: %t, updated moved: %t",
				read.Generation == created.Generation, read.Updated.After(created.Updated))
		},
		strict:     "same generation: true, updated moved: true",
		memory:     "same generation: true, updated moved: false",
		filesystem: "same generation: false, updated moved: false",
	},
	{
		name: "update merges metadata",
		run: func(ctx context.Context, g *target) string {
			g.create("x")
			_, err := g.object("x").Update(ctx, set("First", "1"))
			_, err2 := g.object("x").Update(ctx, set("second", "2"))
			read, err3 := g.object("x").Attrs(ctx)
			if err := errors.Join(err, err2, err3); err != nil {
				return err.Error()
			}
			return fmt.Sprint(read.Metadata)
		},
		strict: "map[First:1 second:2]",
	},
	{
		name: "null removes metadata",
		run: func(_ context.Context, g *target) string {
			g.create("x")
			url := g.url + "/storage/v1/b/b/o/x"
			send(g.t, g.rt, "PATCH", url, `{"metadata":{"a":"1","b":"2"}}`)
			send(g.t, g.rt, "PATCH", url, `{"metadata":{"a":null}}`)
			attrs, err := g.object("x").Attrs(context.Background())
			if err != nil {
				return err.Error()
			}
			return fmt.Sprint(attrs.Metadata)
		},
		strict: "map[b:2]", memory: "map[a: b:2]", filesystem: "map[a: b:2]",
	},
	{
		name: "metadata over 8 KiB",
		run: func(ctx context.Context, g *target) string {
			g.create("x")
			w := g.object("y").NewWriter(ctx)
			w.ChunkSize = 0
			w.Metadata = map[string]string{"a": strings.Repeat("x", 8<<10)}
			return said(w.Close(), attrsErr(g.object("x").Update(ctx, set("a", strings.Repeat("x", 8<<10)))))
		},
		strict: "400 400", memory: "200 200", filesystem: anything, // whatever fits into the file's attributes
	},
	{
		name: "malformed precondition",
		run: func(_ context.Context, g *target) string {
			g.create("x")
			return fmt.Sprint(send(g.t, g.rt, "PATCH", g.url+"/storage/v1/b/b/o/x?ifGenerationMatch=one", "{}").status)
		},
		strict: "400", memory: "200", filesystem: "200",
	},
	{
		name: "Date",
		run: func(_ context.Context, g *target) string {
			g.create("x")
			var dated []bool
			for _, r := range []httpReply{
				send(g.t, g.rt, "GET", g.url+"/storage/v1/b/b/o/x", ""),
				send(g.t, g.rt, "GET", g.url+"/storage/v1/b/b/o/absent", ""),
				send(g.t, g.rt, "DELETE", g.url+"/storage/v1/b/b/o/x", ""),
			} {
				_, err := http.ParseTime(r.header.Get("Date"))
				dated = append(dated, err == nil)
			}
			return fmt.Sprint(dated)
		},
		strict: "[true true true]", memory: "[false false false]", filesystem: "[false false false]",
	},
	{
		name: "reply to a delete",
		run: func(_ context.Context, g *target) string {
			g.create("x")
			r := send(g.t, g.rt, "DELETE", g.url+"/storage/v1/b/b/o/x", "")
			return fmt.Sprintf("%d %q", r.status, r.body)
		},
		strict: `204 ""`, memory: `200 "null\n"`, filesystem: `200 "null\n"`,
	},
	{
		name: "absent, in Cloud Storage's words",
		run: func(_ context.Context, g *target) string {
			word := func(r httpReply) string {
				_, message, _ := strings.Cut(r.body, `"message":"`)
				message, _, _ = strings.Cut(message, `"`)
				return fmt.Sprint(r.status, " ", message)
			}
			return strings.Join([]string{
				word(send(g.t, g.rt, "GET", g.url+"/storage/v1/b/b/o/absent", "")),
				word(send(g.t, g.rt, "DELETE", g.url+"/storage/v1/b/absent/o/x", "")),
				word(send(g.t, g.rt, "POST", g.url+"/upload/storage/v1/b/absent/o?uploadType=media&name=x", "")),
			}, "; ")
		},
		strict:     "404 No such object: b/absent; 404 The specified bucket does not exist.; 404 The specified bucket does not exist.",
		memory:     "404 Not Found; 404 Not Found; 404 Not Found",
		filesystem: "404 Not Found; 404 Not Found; 404 Not Found",
	},
	{
		name: "content and checksum",
		run: func(ctx context.Context, g *target) string {
			a := g.create("x") // whose checksum the Writer has checked
			r, err := g.object("x").NewReader(ctx)
			if err != nil {
				return err.Error()
			}
			defer r.Close()
			content, err := io.ReadAll(r)
			right := a.CRC32C == crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli)) &&
				[md5.Size]byte(a.MD5) == md5.Sum(content)
			return fmt.Sprintf("%s %v %t", content, err, right)
		},
		strict: "content <nil> true",
	},
	{
		name: "update races delete",
		run:  resurrections,
		// Stock memory reads, changes and writes back without holding its lock.
		strict: "never came back", memory: "came back", concurrent: true,
	},
	{
		name: "self-check",
		run: func(ctx context.Context, g *target) string {
			err := gcstest.SelfCheck(ctx, g.client.Bucket("b"), "p/")
			var ignored *gcstest.IgnoredError
			if errors.As(err, &ignored) {
				return strings.Join(ignored.Ignored, "; ")
			}
			return fmt.Sprint(err)
		},
		strict: "<nil>",
		memory: "update: ifGenerationMatch; update: ifMetagenerationMatch; " +
			"update: metageneration moves; update: metageneration in the reply; update: updated moves; " +
			"delete: ifGenerationMatch; delete: ifMetagenerationMatch",
		filesystem: "update: ifGenerationMatch; update: ifMetagenerationMatch; " +
			"update: metageneration moves; update: metageneration in the reply; update: generation stays; update: updated moves; " +
			"delete: ifGenerationMatch; delete: ifMetagenerationMatch",
	},
}

// resurrections has an update and a delete of one object race, many times. Where
// it is known to go wrong it goes on until it has.
func resurrections(ctx context.Context, g *target) string {
	limit := map[string]int{"stock_memory": 100_000, "stock_filesystem": 200}[strings.Split(g.t.Name(), "/")[1]]
	if limit == 0 {
		limit = 1000
	}
	for i := range limit {
		name := fmt.Sprint("x", i)
		url := g.url + "/storage/v1/b/b/o/" + name
		send(g.t, g.rt, "POST", g.url+"/upload/storage/v1/b/b/o?uploadType=media&name="+name, "")
		var wg sync.WaitGroup
		wg.Go(func() { send(g.t, g.rt, "PATCH", url, `{"metadata":{"a":"b"}}`) })
		wg.Go(func() { send(g.t, g.rt, "DELETE", url, "") })
		wg.Wait()
		if send(g.t, g.rt, "GET", url, "").status != http.StatusNotFound {
			g.t.Logf("after %d rounds", i+1)
			return "came back"
		}
	}
	return "never came back"
}
