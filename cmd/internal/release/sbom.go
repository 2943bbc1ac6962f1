package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
)

// The parts of CycloneDX 1.6 that a Go program has something to say for.
type (
	bom struct {
		Schema       string       `json:"$schema"`
		Format       string       `json:"bomFormat"`
		Spec         string       `json:"specVersion"`
		Serial       string       `json:"serialNumber"`
		Version      int          `json:"version"`
		Metadata     bomMetadata  `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	bomMetadata struct {
		Timestamp  string     `json:"timestamp"`
		Component  component  `json:"component"`
		Properties []property `json:"properties"`
	}
	component struct {
		Type     string    `json:"type"`
		Ref      string    `json:"bom-ref"`
		Name     string    `json:"name"`
		Version  string    `json:"version"`
		PURL     string    `json:"purl"`
		Hashes   []hash    `json:"hashes,omitempty"`
		Licenses []license `json:"licenses,omitempty"`
	}
	hash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	license struct {
		License struct {
			ID string `json:"id"`
		} `json:"license"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn"`
	}
)

// libraryComponent is a module; its hash is that of go.sum, in hexadecimal digits.
func libraryComponent(path, version, sum string, texts [][]byte) (component, error) {
	c := component{Type: "library", Name: path, Version: version,
		PURL: "pkg:golang/" + strings.ReplaceAll(path+"@"+version, "+", "%2B")}
	c.Ref = c.PURL
	if of, ok := strings.CutPrefix(sum, "h1:"); ok {
		digest, err := base64.StdEncoding.DecodeString(of)
		if err != nil {
			return c, fmt.Errorf("the sum of %s: %w", path, err)
		}
		c.Hashes = []hash{{"SHA-256", fmt.Sprintf("%x", digest)}}
	}
	for _, text := range texts {
		if id := licenceOf(text); id != "" &&
			!slices.ContainsFunc(c.Licenses, func(l license) bool { return l.License.ID == id }) {
			l := license{}
			l.License.ID = id
			c.Licenses = append(c.Licenses, l)
		}
	}
	return c, nil
}

// modules are the licence texts of all that is in a binary, and its SBOM.
func (r *release) modules(b *binary) (notices, sbom []byte, err error) {
	root, err := output("go", "env", "GOROOT")
	if err != nil {
		return nil, nil, err
	}
	list, err := output("go", "list", "-m", "-f", "{{.Path}}\t{{.Dir}}", "all")
	if err != nil {
		return nil, nil, err
	}
	folders := map[string]string{"std": root}
	for line := range strings.SplitSeq(list, "\n") {
		path, dir, _ := strings.Cut(line, "\t")
		folders[path] = dir
	}
	goVersion := strings.TrimPrefix(b.info.GoVersion, "go")
	deps := append([]*debug.Module{{Path: "std", Version: goVersion}}, b.info.Deps...)
	licence, err := licenceTexts(r.source)
	if err != nil {
		return nil, nil, err
	}
	own, err := libraryComponent(b.program, r.version, "", licence)
	if err != nil {
		return nil, nil, err
	}
	own.Type = "application"
	digest := sha256.Sum256(b.data)
	own.Hashes = []hash{{"SHA-256", fmt.Sprintf("%x", digest)}}
	id := slices.Clone(digest[:16]) // a UUID of version 8: of the digest, so that it is the same each time
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	doc := bom{Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", Spec: "1.6", Version: 1,
		Serial: fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:]),
		Metadata: bomMetadata{Timestamp: r.when.Format("2006-01-02T15:04:05Z"),
			Properties: []property{{"go:platform", b.String()}, {"git:commit", r.commit}}}}
	var text bytes.Buffer
	text.WriteString("Reprise contains the following software, under the licences below.\n")
	page := filepath.Join(r.source, "trace", "doc", "assets", "uplot")
	uplot, err := os.ReadFile(page + ".LICENSE")
	if err != nil {
		return nil, nil, err
	}
	fmt.Fprintf(&text, "\n======== uPlot, in the pages\n\n%s\n", bytes.TrimSpace(uplot))
	all := dependency{Ref: own.Ref}
	for _, m := range deps {
		m = cmp.Or(m.Replace, m)
		texts, err := licenceTexts(folders[m.Path])
		if err != nil {
			return nil, nil, err
		}
		if len(texts) == 0 {
			return nil, nil, fmt.Errorf("%s@%s has no file with its licence in %s", m.Path, m.Version, folders[m.Path])
		}
		for _, t := range texts {
			fmt.Fprintf(&text, "\n======== %s %s\n\n%s\n", m.Path, m.Version, bytes.TrimSpace(t))
		}
		c, err := libraryComponent(m.Path, m.Version, m.Sum, texts)
		if err != nil {
			return nil, nil, err
		}
		doc.Components = append(doc.Components, c)
		all.DependsOn = append(all.DependsOn, c.Ref)
	}
	doc.Metadata.Component, doc.Dependencies = own, []dependency{all}
	sbom, err = json.MarshalIndent(doc, "", "  ")
	return text.Bytes(), append(sbom, '\n'), err
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)(\.(md|txt))?$`)

// licenceTexts are the files of a module that its licence asks to be handed on.
func licenceTexts(dir string) (texts [][]byte, err error) {
	list, err := os.ReadDir(dir)
	for _, f := range list {
		if licenceFile.MatchString(f.Name()) {
			text, err := os.ReadFile(filepath.Join(dir, f.Name()))
			if err != nil {
				return nil, err
			}
			texts = append(texts, text)
		}
	}
	return texts, err
}

// licenceOf is the SPDX name of the licence that a text is; empty where it is not
// plain.
func licenceOf(text []byte) string {
	s := strings.Join(strings.Fields(string(text)), " ")
	bsd := strings.Contains(s, "Redistribution and use in source and binary forms, with or without modification")
	switch {
	case strings.Contains(s,
		"Apache License Version 2.0, January 2004 http://www.apache.org/licenses/ TERMS AND CONDITIONS"):
		return "Apache-2.0"
	case strings.Contains(s, "Permission is hereby granted, free of charge, to any person obtaining a copy"):
		return "MIT"
	case bsd && strings.Contains(s, "may be used to endorse or promote products"):
		return "BSD-3-Clause"
	case bsd:
		return "BSD-2-Clause"
	}
	return ""
}
