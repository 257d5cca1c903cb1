// Facts that are published beside the artifacts of a release: version and changelog, checksums, and the provenance
// statement. Runs on any Node >= 18, without dependencies. The same input gives the same text: no dates, no random numbers.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";

/** The grammar of semver.org, without build metadata, which registries of packages ignore. */
const SEMVER = /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$/;

/**
 * The state of a clone.
 * @typedef {object} Source
 * @property {string | undefined} commit undefined outside of a clone
 * @property {boolean} isModified whether files differ from the commit, or are not in it
 * @property {string[]} tags tags of the commit that begin with `v` and a digit
 */

/** @returns {Source} */
export function readSource(folder) {
  const git = (...args) =>
    execFileSync("git", ["-C", folder, ...args], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  try {
    return {
      commit: git("rev-parse", "HEAD"),
      isModified: git("status", "--porcelain") !== "",
      tags: git("tag", "--points-at", "HEAD", "v[0-9]*").split("\n").filter(Boolean),
    };
  } catch {
    // No git, or no clone, as in the build of the image.
    return { commit: undefined, isModified: false, tags: [] };
  }
}

/**
 * The changelog of a version. A commit with a tag is a release: its tag has to be that of the version, its files those of
 * the commit, and its changelog has to have a section of the version. Without a tag the section may be `Unreleased`. Throws
 * an error that names the problem and its place.
 * @param {{ version: string, changelog: string, source: Source }} release
 */
export function checkRelease({ version, changelog, source: { tags, isModified } }) {
  if (!SEMVER.test(version))
    throw new Error(`package.json: "${version}" is no semantic version such as 1.2.3 or 1.2.3-rc.1`);
  const section = readSection(changelog, version);
  if (tags.length === 0) return section ?? readSection(changelog, "Unreleased") ?? "";
  if (!tags.includes(`v${version}`))
    throw new Error(
      `package.json has version ${version}, and the commit has the tag ${tags.join(", ")}, not v${version}`,
    );
  if (isModified) throw new Error(`the files differ from those of the tag v${version}; see: git status`);
  if (!section)
    throw new Error(
      `CHANGELOG.md has no section "## ${version}" with text; rename "## Unreleased" in the commit of the tag`,
    );
  return section;
}

/** The text of a section, whose heading may have a date; undefined without one. */
function readSection(changelog, title) {
  const sections = changelog.split(/^## /m).slice(1);
  const found = sections.find((section) => /^\[?([^\]\s]+)/.exec(section)?.[1] === title);
  return found === undefined ? undefined : found.slice(found.indexOf("\n")).trim();
}

/** @param {Buffer} content */
export function sha256(content) {
  return createHash("sha256").update(content).digest("hex");
}

/**
 * A file that is published, with its hash.
 * @typedef {{ name: string, sha256: string }} Artifact
 */

/** The text of SHA256SUMS, as `sha256sum --check` reads it. @param {Artifact[]} artifacts */
export function formatSums(artifacts) {
  return sorted(artifacts)
    .map((artifact) => `${artifact.sha256}  ${artifact.name}\n`)
    .join("");
}

/**
 * The provenance of artifacts: an in-toto statement (v1) with the predicate SLSA Provenance (v1). It has no time and no number of
 * the run, so that it can be reproduced; it is not signed.
 *
 * @param {object} build
 * @param {Artifact[]} build.artifacts
 * @param {string} build.version
 * @param {Source} build.source
 * @param {string} build.repository URI of the repository
 * @param {string} build.builder URI of who made it
 * @param {Artifact} build.lock the lock file
 * @param {Artifact & { version: string }} build.node the binary of Node
 */
export function describeProvenance({ artifacts, version, source, repository, builder, lock, node }) {
  const { commit, isModified } = source;
  return {
    _type: "https://in-toto.io/Statement/v1",
    subject: sorted(artifacts).map((artifact) => ({ name: artifact.name, digest: { sha256: artifact.sha256 } })),
    predicateType: "https://slsa.dev/provenance/v1",
    predicate: {
      buildDefinition: {
        buildType: "urn:parley:build:npm-run-release:1",
        externalParameters: { repository, version },
        resolvedDependencies: [
          ...(commit === undefined
            ? []
            : [
                {
                  uri: repository,
                  digest: { gitCommit: commit },
                  ...(isModified && { annotations: { modified: true } }),
                },
              ]),
          { name: lock.name, digest: { sha256: lock.sha256 } },
          { name: node.name, digest: { sha256: node.sha256 }, annotations: { version: node.version } },
        ],
      },
      runDetails: { builder: { id: builder } },
    },
  };
}

function sorted(artifacts) {
  return [...artifacts].sort((left, right) => (left.name < right.name ? -1 : 1));
}
