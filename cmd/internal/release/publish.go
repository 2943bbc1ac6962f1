package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// homePath is a module path that go install can fetch: a host, and a path there.
var homePath = regexp.MustCompile(`^[a-z0-9-]+(\.[a-z0-9-]+)+(/[A-Za-z0-9_][A-Za-z0-9._~-]*)+$`)

// keepPublished writes what names the place that a release is published at: the formula, the
// manifest and the source. Without that place there is none of them.
func (r *release) keepPublished(out *folder) error {
	if r.home == "" {
		fmt.Println("no reprise.rb, reprise.json and source: make release MODULE=host/owner/reprise names " +
			"the place that they are for")
		return nil
	}
	source, err := r.rewritten()
	if err != nil {
		return err
	}
	name := "reprise_" + r.version + "_source.tar.gz"
	manifest, err := r.manifest(out.sums)
	return errors.Join(err, out.keep(name, source), out.keep("reprise.rb", r.formula(out.sums)),
		out.keep("reprise.json", manifest))
}

// archiveURL is where an archive is published, by the rule of GitHub, Gitea and Forgejo.
func (r *release) archiveURL(name string) string {
	return "https://" + r.home + "/releases/download/" + r.version + "/" + name
}

// formula is that of Homebrew, for the archives that there are.
func (r *release) formula(sums map[string]string) []byte {
	var systems strings.Builder
	for _, system := range [][2]string{{"darwin", "macos"}, {"linux", "linux"}} {
		var archives strings.Builder
		for _, arch := range [][2]string{{"arm64", "arm"}, {"amd64", "intel"}} {
			name := r.stem(plain, platform{system[0], arch[0]}) + ".tar.gz"
			if sum := sums[name]; sum != "" {
				fmt.Fprintf(&archives, "    on_%s do\n      url %q\n      sha256 %q\n    end\n",
					arch[1], r.archiveURL(name), sum)
			}
		}
		if archives.Len() > 0 {
			fmt.Fprintf(&systems, "\n  on_%s do\n%s  end\n", system[1], &archives)
		}
	}
	return fmt.Appendf(nil, `class Reprise < Formula
  desc %q
  homepage %q
  version %q
  license "Apache-2.0"
%s
  def install
    bin.install "reprise"
    bash_completion.install "completions/reprise.bash" => "reprise"
    zsh_completion.install "completions/_reprise"
    fish_completion.install "completions/reprise.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/reprise version")
  end
end
`, summary, "https://"+r.home, strings.TrimPrefix(r.version, "v"), &systems)
}

// manifest is that of Scoop, for the archives that there are.
func (r *release) manifest(sums map[string]string) ([]byte, error) {
	type archive struct {
		URL    string `json:"url"`
		Hash   string `json:"hash"`
		Folder string `json:"extract_dir"`
	}
	archives := map[string]archive{}
	for arch, scoop := range map[string]string{"amd64": "64bit", "arm64": "arm64"} {
		stem := r.stem(plain, platform{"windows", arch})
		if sum := sums[stem+".zip"]; sum != "" {
			archives[scoop] = archive{r.archiveURL(stem + ".zip"), sum, stem}
		}
	}
	data, err := json.MarshalIndent(map[string]any{"version": strings.TrimPrefix(r.version, "v"),
		"description": summary, "homepage": "https://" + r.home, "license": "Apache-2.0",
		"architecture": archives, "bin": "reprise.exe"}, "", "    ")
	return append(data, '\n'), err
}
