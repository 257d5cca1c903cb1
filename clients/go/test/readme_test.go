package app

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fragment is a program around one of README.md's code blocks.
const fragment = `package main

import (
IMPORTS
	parley "parley.dev/go"
	parleyv1 "parley.dev/go/parley/v1"
)

var _ = parley.Version

func fragment(ctx context.Context, client *parley.Client, request *parleyv1.CompletionRequest, key string, pem []byte) error {
BLOCK
	return nil
}

func main() { _ = fragment }
`

// packages are those that README.md's code blocks may use, by name.
var packages = map[string]string{
	"errors": "errors", "fmt": "fmt", "time": "time", "tls": "crypto/tls", "x509": "crypto/x509",
	"grpc": "google.golang.org/grpc", "metadata": "google.golang.org/grpc/metadata",
}

func readBlocks(t *testing.T) []string {
	t.Helper()
	folder, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "parley.dev/go").Output()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, match := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, match[1])
	}
	return blocks
}

// writeProgram writes a program into a folder of this module and returns its file.
func writeProgram(t *testing.T, text string) string {
	t.Helper()
	folder, err := os.MkdirTemp(".", "readme-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	file := filepath.Join(folder, "main.go")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestFirstProgramOfTheReadme(t *testing.T) {
	t.Parallel()
	program := readBlocks(t)[0]
	output, err := exec.Command("go", "run", writeProgram(t, program)).CombinedOutput()
	if err != nil || !strings.Contains(string(output), "tides") {
		t.Errorf("%v\n%s", err, output)
	}
}

func TestOtherBlocksOfTheReadmeCompile(t *testing.T) {
	t.Parallel()
	blocks := readBlocks(t)[1:]
	if len(blocks) < 4 {
		t.Fatalf("README.md has %d blocks of Go", len(blocks))
	}
	arguments := []string{"vet"}
	for _, block := range blocks {
		imports := "\t\"context\"\n"
		for name, path := range packages {
			if strings.Contains(block, name+".") {
				imports += "\t\"" + path + "\"\n"
			}
		}
		program := strings.NewReplacer("IMPORTS", imports, "BLOCK", block).Replace(fragment)
		arguments = append(arguments, "./"+filepath.Dir(writeProgram(t, program)))
	}
	if output, err := exec.Command("go", arguments...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}
