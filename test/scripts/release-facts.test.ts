import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { checkRelease, describeProvenance, formatSums, readSource } from "../../scripts/release-facts.mjs";

const CHANGELOG = `# Changelog

## Unreleased

- Something new.

## 1.2.0 (2026-11-27)

### Added

- A thing.

## 1.1.0

- An older thing.
`;
const UNTAGGED = { commit: "c".repeat(40), isModified: true, tags: [] };
const TAGGED = { commit: "c".repeat(40), isModified: false, tags: ["v1.2.0"] };

describe("the changelog of a release", () => {
  it.each([
    ["1.2.0", TAGGED, "### Added\n\n- A thing."],
    ["1.2.0", UNTAGGED, "### Added\n\n- A thing."],
    ["1.1.0", { ...TAGGED, tags: ["v1.1.0"] }, "- An older thing."],
    ["1.3.0", UNTAGGED, "- Something new."],
    ["1.3.0-rc.1", UNTAGGED, "- Something new."],
  ])("of version %s is its section, or that of unreleased changes", (version, source, expected) => {
    expect(checkRelease({ version, changelog: CHANGELOG, source })).toBe(expected);
  });

  it.each([
    ["1.3.0", TAGGED, "package.json has version 1.3.0, and the commit has the tag v1.2.0, not v1.3.0"],
    ["1.3.0", { ...TAGGED, tags: ["v1.3.0"] }, 'CHANGELOG.md has no section "## 1.3.0" with text'],
    ["1.2.0", { ...TAGGED, isModified: true }, "the files differ from those of the tag v1.2.0"],
    ["1.2", UNTAGGED, 'package.json: "1.2" is no semantic version'],
    ["01.2.0", UNTAGGED, "is no semantic version"],
    ["1.2.0+build", UNTAGGED, "is no semantic version"],
  ])("of version %s is refused where something does not fit", (version, source, message) => {
    expect(() => checkRelease({ version, changelog: CHANGELOG, source })).toThrow(message);
  });
});

describe("the source of a release", () => {
  it("is the commit with its tags of versions, and whether files differ", () => {
    const folder = mkdtempSync(join(tmpdir(), "parley-source-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    expect(readSource(folder)).toEqual({ commit: undefined, isModified: false, tags: [] });
    const git = (...args: readonly string[]) =>
      execFileSync("git", ["-C", folder, "-c", "user.name=a", "-c", "user.email=a@example.com", ...args]);
    git("init", "-q");
    writeFileSync(join(folder, "a"), "a");
    git("add", "a");
    git("commit", "-qm", "a");
    git("tag", "v1.0.0");
    git("tag", "other");
    expect(readSource(folder)).toEqual({
      commit: expect.stringMatching(/^[0-9a-f]{40}$/) as string,
      isModified: false,
      tags: ["v1.0.0"],
    });
    writeFileSync(join(folder, "b"), "b");
    expect(readSource(folder).isModified).toBe(true);
  });
});

describe("the facts of artifacts", () => {
  const artifacts = [
    { name: "b", sha256: "2".repeat(64) },
    { name: "a", sha256: "1".repeat(64) },
  ];

  it("are in the order of their names in SHA256SUMS", () => {
    expect(formatSums(artifacts)).toBe(`${"1".repeat(64)}  a\n${"2".repeat(64)}  b\n`);
  });

  it("are the subjects of the provenance, which names commit, lock and Node", () => {
    const build = {
      artifacts,
      version: "1.2.0",
      repository: "https://example.com/parley",
      builder: "https://example.com/ci",
      lock: { name: "package-lock.json", sha256: "3".repeat(64) },
      node: { name: "node", sha256: "4".repeat(64), version: "26.10.0" },
    };
    expect(describeProvenance({ ...build, source: TAGGED })).toEqual({
      _type: "https://in-toto.io/Statement/v1",
      subject: [
        { name: "a", digest: { sha256: "1".repeat(64) } },
        { name: "b", digest: { sha256: "2".repeat(64) } },
      ],
      predicateType: "https://slsa.dev/provenance/v1",
      predicate: {
        buildDefinition: {
          buildType: "urn:parley:build:npm-run-release:1",
          externalParameters: { repository: "https://example.com/parley", version: "1.2.0" },
          resolvedDependencies: [
            { uri: "https://example.com/parley", digest: { gitCommit: "c".repeat(40) } },
            { name: "package-lock.json", digest: { sha256: "3".repeat(64) } },
            { name: "node", digest: { sha256: "4".repeat(64) }, annotations: { version: "26.10.0" } },
          ],
        },
        runDetails: { builder: { id: "https://example.com/ci" } },
      },
    });
    expect(JSON.stringify(describeProvenance({ ...build, source: UNTAGGED }))).toContain('"modified":true');
    const outside = { commit: undefined, isModified: false, tags: [] };
    expect(JSON.stringify(describeProvenance({ ...build, source: outside }))).not.toContain("gitCommit");
  });
});
