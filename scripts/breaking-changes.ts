import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { runTool } from "./tools.ts";

const git = async (...args: string[]): Promise<string> => (await promisify(execFile)("git", args)).stdout.trim();

/**
 * Fails when the contract has breaking changes against the last release (the newest tag `v*`), or before the first release against
 * the main branch (the remote's, else the local one). Returns the reason when there is nothing to compare with: no git, or no
 * earlier commit with a contract.
 *
 * @throws {Error} for a breaking change, which buf has printed
 */
export async function checkBreakingChanges(): Promise<string | undefined> {
  const commit = await findEarlierCommit();
  if (commit === undefined) return "there is no earlier contract, of a release or on a main branch";
  console.log(`compared with ${commit.slice(0, 12)}`);
  const folder = await mkdtemp(join(tmpdir(), "parley-contract-"));
  try {
    // An archive instead of buf's own reading of .git, which does not work in a git worktree.
    const archive = join(folder, "main.tar");
    await git("archive", "--format=tar", `--output=${archive}`, commit, "proto");
    await runTool("buf", ["breaking", "proto", "--against", `${archive}#subdir=proto`]);
    return undefined;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function findEarlierCommit(): Promise<string | undefined> {
  const tags = await git("tag", "--list", "v*", "--sort=-version:refname").catch(() => "");
  const released = tags.split("\n").filter((tag) => tag !== "");
  for (const ref of [
    ...released.slice(0, 1).map((tag) => `refs/tags/${tag}`),
    "refs/remotes/origin/main",
    "refs/heads/main",
  ]) {
    const found = await git("rev-parse", "--verify", "--quiet", `${ref}^{commit}`, "--").catch(() => "");
    const commit = found.split("\n")[0] ?? "";
    const hasContract = commit !== "" && (await git("ls-tree", "--name-only", commit, "proto/").catch(() => "")) !== "";
    if (hasContract) return commit;
  }
  return undefined;
}
