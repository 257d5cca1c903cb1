import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, inject, it, onTestFinished } from "vitest";
import { createDatabase } from "../support/postgres.ts";
import { makeHome, runProduct, startProduct } from "../support/product.ts";
import { startRedis } from "../support/redis.ts";
import { postChat } from "../support/post-json.ts";

const root = join(import.meta.dirname, "../..");

it("an unpacked release without further packages serves with PostgreSQL and Redis", async () => {
  execFileSync(process.execPath, [join(root, "scripts/run.mjs"), "scripts/release.mjs"], { stdio: "pipe" });
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
  const folder = mkdtempSync(join(tmpdir(), "parley-release-"));
  const home = makeHome();
  onTestFinished(() => {
    for (const each of [folder, home]) rmSync(each, { recursive: true, force: true });
  });
  execFileSync("tar", ["-xzf", join(root, `dist/parley-${version}.tgz`), "-C", folder, "--strip-components=1"]);
  const redis = await startRedis();
  const env = {
    PARLEY_DATABASE_URL: await createDatabase(inject("postgresUrl")),
    PARLEY_REDIS_URL: redis.url,
  };
  const program = join(folder, "scripts/parley.mjs");
  const product = await startProduct({ home, program, env });
  try {
    const created = runProduct(["keys", "create", "--name", "a"], { home, program, env });
    expect(await created.ending).toEqual({ code: 0, signal: null });
    const answer = await postChat(product.url, created.output.stdout.trim(), {
      model: "alpha-haiku-4.5",
      messages: [{ role: "user", content: "Hello" }],
    });
    expect(answer.status).toBe(200);
    await answer.text();
  } finally {
    product.signal("SIGTERM");
    expect(await product.ending).toEqual({ code: 0, signal: null });
    await product.stop();
  }
  expect(product.output.stderr).not.toMatch(/cannot|away|unavailable|Installing/);
  expect(existsSync(join(folder, "node_modules"))).toBe(false);
});
