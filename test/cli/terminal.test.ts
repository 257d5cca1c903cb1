import { describe, expect, it } from "vitest";
import { forTerminal } from "../../src/cli/terminal.ts";

/** What a stream gets of a text. */
function written(text: string, isTTY: boolean): string {
  const pieces: string[] = [];
  forTerminal({ isTTY, write: (piece) => pieces.push(piece) }).write(text);
  return pieces.join("");
}

describe("the text of a command", () => {
  it.each([
    ["a new title of the window", "\u001b]0;title\u0007", "\ufffd]0;title\ufffd"],
    ["a cleared screen", "\u001b[2J", "\ufffd[2J"],
    ["the same in one character", "\u009b2J", "\ufffd2J"],
    ["the beginning of the line", "revoked\ractive", "revoked\ufffdactive"],
    ["the order of letters", "a\u202eb\u2066c", "a\ufffdb\ufffdc"],
  ])("controls no terminal: %s", (_, text, shown) => {
    expect(written(text, true)).toBe(shown);
  });

  it("has tabs, lines and letters of every script", () => {
    const text = "Straße\t北京\n👩‍💻 नमस्ते\n";
    expect(written(text, true)).toBe(text);
  });

  it("is not changed in a file or pipe", () => {
    expect(written("\u001b[2J\r\n", false)).toBe("\u001b[2J\r\n");
  });
});
