import { describe, expect, it } from "vitest";
import { fillWithRandomBase62, randomBase62, toBase62 } from "../../src/access/api-key.ts";

describe("base 62", () => {
  it("draws all digits equally often", () => {
    const counts = new Map<string, number>();
    for (const digit of randomBase62(620_000)) counts.set(digit, (counts.get(digit) ?? 0) + 1);
    expect(counts.size).toBe(62);
    // Seven standard deviations. Bytes taken modulo 62 without a limit would give eight digits a quarter more.
    for (const count of counts.values()) expect(Math.abs(count - 10_000)).toBeLessThan(700);
  });

  it("draws new digits each time, also after its pool of bytes is used up", () => {
    expect(new Set(Array.from({ length: 1_000 }, () => randomBase62(16))).size).toBe(1_000);
  });

  it("keeps the text before the position", () => {
    const text = Buffer.from("id------");
    fillWithRandomBase62(text, 2);
    expect(text.toString()).toMatch(/^id[0-9A-Za-z]{6}$/);
  });

  it("writes numbers with leading zeros, so that texts sort like the numbers", () => {
    expect(toBase62(0, 3)).toBe("000");
    expect(toBase62(61, 3)).toBe("00z");
    expect(toBase62(62, 3)).toBe("010");
    expect(toBase62(0xffff_ffff, 6)).toBe("4gfFC3");
  });
});
