import { PassThrough } from "node:stream";
import { afterEach, describe, expect, it, vi } from "vitest";
import { readSecret } from "../../src/cli/command.ts";

describe("a secret from standard input", () => {
  afterEach(() => vi.restoreAllMocks());

  it.each([
    [
      "says at a terminal that it waits",
      true,
      "--password-stdin: type or paste it here, then press Enter and Ctrl-D.\n",
    ],
    ["says nothing where it comes from a file or a pipe", false, ""],
  ])("%s", async (_, isTTY, expected) => {
    const input = Object.assign(new PassThrough(), { isTTY });
    vi.spyOn(process, "stdin", "get").mockReturnValue(input as unknown as typeof process.stdin);
    const said = vi.spyOn(process.stderr, "write").mockReturnValue(true);
    input.end("a long password\n");
    expect(await readSecret({}, "--password-stdin")).toBe("a long password");
    expect(said.mock.calls.map(([text]) => text).join("")).toBe(expected);
  });
});
