// A crawler with net/http and goquery: `go_crawl SEEDS OUTPUT`.
//
// Nothing but what is needed to be fast: 64 goroutines, connections that are kept, a map of known
// URLs, a map of the hrefs of each page so that none is resolved twice, one line of JSON a page. No
// store, no robots.txt: the paths that this web's robots.txt forbids are left out by name.
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/PuerkitoBio/goquery"
)

const atOnce = 64

type crawler struct {
	client  *http.Client
	lock    sync.Mutex
	wake    *sync.Cond
	known   map[string]struct{}
	hosts   map[string]struct{}
	waiting []string
	busy    int
	lines   *json.Encoder
}

type line struct {
	URL    string  `json:"url"`
	Status int     `json:"status"`
	Title  string  `json:"title"`
	Links  int     `json:"links"`
	At     float64 `json:"at"`
}

func isForbidden(path string) bool {
	return strings.HasPrefix(path, "/private/") || strings.HasPrefix(path, "/search")
}

func (c *crawler) offer(found []*url.URL) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for _, link := range found {
		if _, isHere := c.hosts[link.Host]; !isHere || isForbidden(link.Path) {
			continue
		}
		link.Fragment = ""
		if strings.HasPrefix(link.RawQuery, "utm_") {
			link.RawQuery = ""
		}
		text := link.String()
		if _, isKnown := c.known[text]; !isKnown {
			c.known[text] = struct{}{}
			c.waiting = append(c.waiting, text)
			c.wake.Signal()
		}
	}
}

func (c *crawler) page(address string) {
	answer, err := c.client.Get(address)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer answer.Body.Close()
	title, count := "", 0
	if strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") {
		document, err := goquery.NewDocumentFromReader(answer.Body)
		if err != nil {
			return
		}
		title = document.Find("title").First().Text()
		base := answer.Request.URL
		hrefs := make(map[string]struct{}, 128)
		found := make([]*url.URL, 0, 128)
		document.Find("a[href]").Each(func(_ int, link *goquery.Selection) {
			count++
			href, _ := link.Attr("href")
			if _, isDone := hrefs[href]; isDone {
				return
			}
			hrefs[href] = struct{}{}
			if target, err := base.Parse(href); err == nil {
				found = append(found, target)
			}
		})
		c.offer(found)
	}
	c.lock.Lock()
	c.lines.Encode(line{address, answer.StatusCode, title, count, float64(time.Now().UnixNano()) / 1e9})
	c.lock.Unlock()
}

func (c *crawler) work(done *sync.WaitGroup) {
	defer done.Done()
	c.lock.Lock()
	defer c.lock.Unlock()
	for {
		for len(c.waiting) == 0 {
			if c.busy == 0 {
				c.wake.Broadcast()
				return
			}
			c.wake.Wait()
		}
		address := c.waiting[0]
		c.waiting = c.waiting[1:]
		c.busy++
		c.lock.Unlock()
		c.page(address)
		c.lock.Lock()
		c.busy--
	}
}

func main() {
	seeds, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	file, err := os.Create(os.Args[2])
	if err != nil {
		panic(err)
	}
	transport := &http.Transport{MaxIdleConns: 4096, MaxIdleConnsPerHost: 16, MaxConnsPerHost: 16}
	if trusted := os.Getenv("SSL_CERT_FILE"); trusted != "" {
		authority, _ := os.ReadFile(trusted)
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(authority)
		transport.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	output := bufio.NewWriter(file)
	c := &crawler{
		client: &http.Client{Transport: transport, Timeout: 30 * time.Second},
		known:  map[string]struct{}{},
		hosts:  map[string]struct{}{},
		lines:  json.NewEncoder(output),
	}
	c.wake = sync.NewCond(&c.lock)
	var first []*url.URL
	for _, line := range strings.Fields(string(seeds)) {
		seed, err := url.Parse(line)
		if err != nil {
			panic(err)
		}
		c.hosts[seed.Host] = struct{}{}
		first = append(first, seed)
	}
	c.offer(first)
	var done sync.WaitGroup
	for range [atOnce]struct{}{} {
		done.Add(1)
		go c.work(&done)
	}
	done.Wait()
	output.Flush()
	file.Close()
}
