import { promisify } from "node:util";
import { crc32, deflate } from "node:zlib";
import { createDice, type Dice } from "./dice.ts";
import { findGlyph, LINE_HEIGHT, measureLine, toPrintable } from "./font.ts";
import type { PictureOrder } from "./prompt.ts";
import { abbreviate } from "./text.ts";

type Colour = readonly [number, number, number];

const SIDES: Readonly<Record<string, number>> = { "512": 512, "1K": 1024, "2K": 2048, "4K": 4096 };

/** Palette layout: three colour ramps of equal length (background, discs, panel), then the text colours. */
const RAMP = 80;
const LIGHT = RAMP;
const DARK = 2 * RAMP;
const INK = 3 * RAMP;
const PALE_INK = INK + 1;

const LABEL = "SIMULATED IMAGE";
const MAX_CHARACTERS = 600;
/** Line height in font pixels, from base line to base line. */
const LEADING = LINE_HEIGHT + 2;

/**
 * Returns width and height in pixels: the area of a square of this size at the given ratio, in multiples of 32, as in
 * real images.
 */
export function planSize({ aspectRatio, size }: PictureOrder): { width: number; height: number } {
  const [across = 1, down = 1] = aspectRatio.split(":").map(Number);
  const side = SIDES[size] ?? 1024;
  const round = (length: number): number => Math.max(32, Math.round(length / 32) * 32);
  return { width: round(side * Math.sqrt(across / down)), height: round(side * Math.sqrt(down / across)) };
}

/** Converts HSL to RGB. Hue in degrees, saturation and lightness from 0 to 1. */
function toRgb(hue: number, saturation: number, lightness: number): Colour {
  const channel = (shift: number): number => {
    const position = (shift + hue / 30) % 12;
    const swing = saturation * Math.min(lightness, 1 - lightness);
    return Math.round(255 * (lightness - swing * Math.max(-1, Math.min(position - 3, 9 - position, 1))));
  };
  return [channel(0), channel(8), channel(4)];
}

function mixPalette(dice: Dice): Colour[] {
  const hue = dice.roll(360);
  const turn = 35 + dice.roll(40);
  const ramp = (lift: number, saturation: number): Colour[] =>
    Array.from({ length: RAMP }, (_, step) => {
      const along = step / (RAMP - 1);
      return toRgb((hue + turn * along) % 360, saturation, 0.5 - 0.2 * along + lift);
    });
  return [...ramp(0, 0.5), ...ramp(0.045, 0.5), ...ramp(-0.19, 0.45), [255, 255, 255], toRgb(hue, 0.55, 0.86)];
}

/**
 * Rows of a PNG file: a byte for no filter, then the pixels. Shapes keep the gradient and only move it to another ramp. Rows are copied,
 * because a large picture has millions of pixels.
 */
class Canvas {
  readonly width: number;
  readonly height: number;
  readonly rows: Uint8Array;
  /** The gradient along both sides, in each ramp. */
  readonly #gradients: ReadonlyMap<number, Uint8Array>;

  constructor(width: number, height: number) {
    this.width = width;
    this.height = height;
    this.rows = new Uint8Array((1 + width) * height);
    const sides = width + height;
    const gradient = Uint8Array.from({ length: sides }, (_, at) => Math.floor((at / sides) * RAMP));
    this.#gradients = new Map([0, LIGHT, DARK].map((ramp) => [ramp, gradient.map((step) => step + ramp)]));
    for (let y = 0; y < height; y += 1) this.shade([0, width], y, 0);
  }

  /** Moves a run of pixels to another ramp, clipped to the canvas. */
  shade([left, right]: readonly [number, number], y: number, ramp: number): void {
    const [start, end] = [Math.max(0, left), Math.min(this.width, right)];
    if (y < 0 || y >= this.height || start >= end) return;
    this.rows.set(this.#gradients.get(ramp)!.subarray(y + start, y + end), this.#at(start, y));
  }

  fillDisc(centreX: number, centreY: number, radius: number): void {
    for (let y = -radius; y <= radius; y += 1) {
      const half = Math.round(Math.sqrt(radius * radius - y * y));
      this.shade([centreX - half, centreX + half], centreY + y, LIGHT);
    }
  }

  fillPanel(box: { left: number; top: number; width: number; height: number; radius: number }): void {
    for (let row = 0; row < box.height; row += 1) {
      const depth = Math.max(box.radius - row, box.radius - (box.height - 1 - row), 0);
      const inset = box.radius - Math.round(Math.sqrt(box.radius * box.radius - depth * depth));
      this.shade([box.left + inset, box.left + box.width - inset], box.top + row, DARK);
    }
  }

  write(line: string, at: { left: number; top: number; scale: number; ink: number }): void {
    let left = at.left;
    for (const character of line) {
      const glyph = findGlyph(character);
      glyph.forEach((row, y) => {
        row.forEach((isInk, x) => {
          if (isInk) this.fillSquare(left + x * at.scale, at.top + y * at.scale, at);
        });
      });
      left += ((glyph[0]?.length ?? 0) + 1) * at.scale;
    }
  }

  private fillSquare(left: number, top: number, { scale, ink }: { scale: number; ink: number }): void {
    const right = Math.min(this.width, left + scale);
    for (let y = top; y < Math.min(this.height, top + scale); y += 1)
      this.rows.fill(ink, this.#at(left, y), this.#at(right, y));
  }

  #at(x: number, y: number): number {
    return y * (1 + this.width) + 1 + x;
  }
}

/** Wraps text into lines of at most `width` font pixels. A word that is too long is split. */
export function wrapLines(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (measureLine(longer) <= width) {
      line = longer;
      continue;
    }
    if (line !== "") lines.push(line);
    line = "";
    for (const character of word) {
      if (line !== "" && measureLine(line + character) > width) {
        lines.push(line);
        line = "";
      }
      line += character;
    }
  }
  return line === "" ? lines : [...lines, line];
}

/** Returns the largest scale at which the text fits the space, and the wrapped lines. */
function fitText(text: string, space: { width: number; height: number; largest: number; smallest: number }) {
  for (let scale = space.largest; scale > space.smallest; scale -= 1) {
    const lines = wrapLines(text, Math.floor(space.width / scale));
    const breaksNoWord = text.split(" ").every((word) => measureLine(word) * scale <= space.width);
    if (breaksNoWord && lines.length * LEADING * scale <= space.height) return { scale, lines };
  }
  const lines = wrapLines(text, Math.floor(space.width / space.smallest));
  const room = Math.max(1, Math.floor(space.height / (LEADING * space.smallest)));
  const shown = lines.length > room ? [...lines.slice(0, room - 1), "..."] : lines;
  return { scale: space.smallest, lines: shown };
}

/** Draws the text on a panel over a gradient, with colours derived from the text. Returns a PNG file. */
export async function drawPicture(words: string, order: PictureOrder): Promise<Buffer> {
  const { width, height } = planSize(order);
  const dice = createDice(`picture ${words}`);
  const palette = mixPalette(dice);
  const canvas = new Canvas(width, height);
  const short = Math.min(width, height);
  const long = Math.max(width, height);

  for (let count = 0; count < 4; count += 1) {
    const radius = Math.round(short * (0.12 + dice.roll(30) / 100));
    canvas.fillDisc(dice.roll(width), dice.roll(height), radius);
  }

  const margin = Math.round(short * 0.07);
  const padding = Math.round(short * 0.06);
  const panel = { left: margin, top: margin, width: width - 2 * margin, height: height - 2 * margin };
  canvas.fillPanel({ ...panel, radius: Math.round(short * 0.035) });

  const left = panel.left + padding;
  const labelScale = Math.max(1, Math.round(short / 340));
  canvas.write(LABEL, { left, top: panel.top + padding, scale: labelScale, ink: PALE_INK });

  const labelHeight = LEADING * labelScale * 2;
  const space = { width: panel.width - 2 * padding, height: panel.height - 2 * padding - labelHeight };
  const text = toPrintable(abbreviate(words, MAX_CHARACTERS)) || "(no words)";
  const largest = Math.max(2, Math.round(long / 80));
  const { scale, lines } = fitText(text, { ...space, largest, smallest: Math.max(1, Math.round(short / 512)) });
  const top = panel.top + padding + labelHeight + Math.floor((space.height - lines.length * LEADING * scale) / 2);
  lines.forEach((line, row) => canvas.write(line, { left, top: top + row * LEADING * scale, scale, ink: INK }));

  return encodePng(canvas, palette);
}

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const BIT_DEPTH = 8;
const INDEXED_COLOUR = 3;

/** Runs in the thread pool, because a large image would block the event loop. */
const compress = promisify<Uint8Array, Buffer>(deflate);

function writeChunk(type: string, data: Buffer): Buffer {
  const chunk = Buffer.alloc(12 + data.length);
  chunk.writeUInt32BE(data.length, 0);
  chunk.write(type, 4, "latin1");
  data.copy(chunk, 8);
  chunk.writeUInt32BE(crc32(chunk.subarray(4, 8 + data.length)), 8 + data.length);
  return chunk;
}

/** Encodes a picture of up to 256 colours as a PNG file. `palette`: RGB values of each colour, 0 to 255. */
async function encodePng({ width, height, rows }: Canvas, palette: readonly Colour[]): Promise<Buffer> {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([BIT_DEPTH, INDEXED_COLOUR, 0, 0, 0], 8);

  return Buffer.concat([
    SIGNATURE,
    writeChunk("IHDR", header),
    writeChunk("PLTE", Buffer.from(palette.flat())),
    writeChunk("IDAT", await compress(rows)),
    writeChunk("IEND", Buffer.alloc(0)),
  ]);
}
