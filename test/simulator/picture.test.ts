import { describe, expect, it } from "vitest";
import { findGlyph, LINE_HEIGHT, measureLine, toPrintable } from "../../src/simulator/font.ts";
import { drawPicture, planSize, wrapLines } from "../../src/simulator/picture.ts";
import { readPng } from "./support/png-reader.ts";

const SQUARE = { aspectRatio: "1:1", size: "512", caption: true };
/** Palette index of the prompt's text. */
const INK = 240;

describe("an image", () => {
  it.each([
    ["1:1", "1K", 1024, 1024],
    ["16:9", "1K", 1376, 768],
    ["9:16", "1K", 768, 1376],
    ["21:9", "1K", 1568, 672],
    ["1:1", "2K", 2048, 2048],
    ["3:2", "512", 640, 416],
  ])("of %s at %s is a valid PNG of %i × %i pixels", async (aspectRatio, size, width, height) => {
    const order = { aspectRatio, size, caption: true };
    expect(planSize(order)).toEqual({ width, height });
    expect(readPng(await drawPicture("The quick brown fox", order))).toMatchObject({ width, height, colours: 242 });
  });

  it("is identical for the same text and different for another", async () => {
    const first = await drawPicture("A red bicycle", SQUARE);
    expect(await drawPicture("A red bicycle", SQUARE)).toEqual(first);
    expect(await drawPicture("A blue bicycle", SQUARE)).not.toEqual(first);
  });

  it("shows its text: contains the exact pixels of the glyphs", async () => {
    const { width, height, pixels } = readPng(await drawPicture("HI", SQUARE));
    const inked = (x: number, y: number): boolean => pixels[y * width + x] === INK;
    const points = Array.from(
      { length: width * height },
      (_, at) => [at % width, Math.floor(at / width)] as const,
    ).filter(([x, y]) => inked(x, y));
    const [left, top] = [Math.min(...points.map(([x]) => x)), Math.min(...points.map(([, y]) => y))];
    const right = Math.max(...points.map(([x]) => x));
    const scale = (right - left + 1) / measureLine("HI");
    const drawn = Array.from({ length: 7 }, (_, y) =>
      Array.from({ length: 5 }, (__, x) => inked(left + x * scale, top + y * scale)),
    );
    expect(drawn).toEqual(findGlyph("H").slice(0, 7));
  });

  it("has a limited file size, and accepts any text", async () => {
    const file = await drawPicture(`${"long words and short ".repeat(200)}${"x".repeat(3000)}`, {
      ...SQUARE,
      size: "1K",
    });
    expect(readPng(file).width).toBe(1024);
    expect(file.length).toBeLessThan(200_000);
    expect(readPng(await drawPicture("", SQUARE)).width).toBe(512);
  });

  it("has a distinct glyph for every printable ASCII character", () => {
    const characters = Array.from({ length: 94 }, (_, index) => String.fromCharCode(33 + index));
    const drawn = new Set(characters.map((character) => JSON.stringify(findGlyph(character))));
    expect(drawn.size).toBe(94);
    expect(drawn).not.toContain(JSON.stringify(findGlyph("世")));
    for (const character of characters) expect(findGlyph(character)).toHaveLength(LINE_HEIGHT);
  });

  it("converts accents and typographic marks", () => {
    expect(toPrintable("Café “naïve” – it’s…")).toBe('Cafe "naive" - it\'s...');
  });

  it("wraps lines between words, and splits only words that are longer than a line", () => {
    expect(wrapLines("aa bb cc", measureLine("aa bb"))).toEqual(["aa bb", "cc"]);
    expect(wrapLines("aaaa", measureLine("aa"))).toEqual(["aa", "aa"]);
  });
});
