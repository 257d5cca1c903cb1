import { describe, expect, it, vi } from "vitest";

// React's types, and those of a page, are not part of the tests' program.
const { createElement } = await vi.importActual<{ createElement: (type: unknown, props: object) => object }>("react");
const { renderToStaticMarkup } = await vi.importActual<{ renderToStaticMarkup: (element: object) => string }>(
  "react-dom/server",
);
const { default: Markdown } = await vi.importActual<{ default: unknown }>("../../web/playground/markdown.tsx");

const render = (text: string): string => renderToStaticMarkup(createElement(Markdown, { text }));
const tagsOf = (text: string): string[] => [...render(text).matchAll(/<([a-z0-9]+)/g)].map(([, tag]) => tag!);

/** Time of the processor, which other programs do not lengthen. */
function cpuMs(act: () => void): number {
  const before = process.cpuUsage();
  act();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

describe("the markdown of an answer", () => {
  it("is headings, lists, tables, quotes and emphasis", () => {
    const html = render(
      "# Title\n\nSome *words* and **more**, ~~gone~~ `code`\n\n- one\n- two\n  1. in\n\n> said\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n---\n",
    );
    for (const part of [
      ">Title</p>",
      "<em>words</em>",
      ">more</strong>",
      "<del>gone</del>",
      ">code</code>",
      "<blockquote",
      "<hr",
    ])
      expect(html).toContain(part);
    expect(html.match(/<li/g)).toHaveLength(3);
    expect(html).toMatch(/<th [^>]*text-right[^>]*>b</);
    expect(html).toMatch(/<td [^>]*>2</);
  });

  it("has code as it is written, with its language and a button to copy", () => {
    const html = render("```ts\nconst a = `<b>` && 1;\n  // *not* emphasis\n```");
    expect(html).toContain("<code>const a = `&lt;b&gt;` &amp;&amp; 1;\n  // *not* emphasis</code>");
    expect(html).toContain(">ts</span>");
    expect(html).toContain('aria-label="Copy the ts code"');
  });

  it("is shown while its end is missing", () => {
    expect(render("Look:\n\n```python\nprint(1)")).toContain("<code>print(1)</code>");
    expect(render("**bol")).toContain("**bol");
  });

  it("keeps line breaks", () => {
    expect(render("one\ntwo")).toContain("one\ntwo");
  });

  it.each([
    '<img src=x onerror="hurt()">',
    "<script>hurt()</script>",
    'text <b onclick="hurt()">inline</b> text',
    "<iframe src=https://example.com></iframe>",
    "```html\n<script>hurt()</script>\n```",
    '| <img src=x onerror="hurt()"> |\n|---|\n| <svg onload=hurt()> |',
    "![alt](https://example.com/pixel.png)",
    "![x](javascript:hurt)",
    "[x](javascript:hurt())",
    "[x](data:text/html,hurt)",
    "[x](JaVaScRiPt:hurt())",
    "[x]( java\nscript:hurt())",
    "<javascript:hurt()>",
    "[x](vbscript:hurt)",
    "[x][1]\n\n[1]: javascript:hurt()",
  ])("runs and loads nothing: %s", (text) => {
    const html = render(text);
    expect(tagsOf(text).filter((tag) => ["img", "script", "iframe", "svg", "b", "object"].includes(tag))).toEqual([]);
    expect(html).not.toMatch(/<[^>]* on\w+=/);
    expect([...html.matchAll(/href="([^"]*)"/g)].map(([, href]) => href)).toEqual(
      text.startsWith("![alt]") ? ["https://example.com/pixel.png"] : [],
    );
  });

  it("has links of the web without a referrer", () => {
    const html = render("[docs](https://example.com/a?b=1&c=2) and https://example.org");
    expect(html).toContain('href="https://example.com/a?b=1&amp;c=2"');
    expect(html).toContain('href="https://example.org"');
    expect(html.match(/rel="noopener noreferrer nofollow"/g)).toHaveLength(2);
  });

  it("of a long answer is read in time", () => {
    const text = "Some *words* with `code`.\n\n- a\n- b\n\n".repeat(2_000);
    expect(cpuMs(() => render(text))).toBeLessThan(5_000);
  });

  it.each([
    "[".repeat(20_000),
    "*".repeat(20_000),
    "`".repeat(20_000),
    "> ".repeat(5_000),
    "![".repeat(10_000),
    "_a".repeat(10_000),
    `${"a".repeat(20_000)}@`,
    `${"|a".repeat(10_000)}\n${"|-".repeat(10_000)}\n${"|\n".repeat(1_000)}`,
    Array.from({ length: 300 }, (_, depth) => `${"  ".repeat(depth)}- a`).join("\n"),
  ])("that is meant to take long does not: %.10s", (text) => {
    expect(cpuMs(() => render(text))).toBeLessThan(1_500);
  });

  it("has a block as it is written that is very long, and the others as usual", () => {
    const html = render(`**bold**\n\n${"_a_ ".repeat(2_000)}\n\n**more**`);
    expect(html).toContain("_a_ _a_");
    expect(html.match(/<strong/g)).toHaveLength(2);
  });
});
