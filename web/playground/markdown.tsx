import { memo, type ReactNode, useEffect, useMemo, useState } from "react";
import { Lexer, type MarkedToken, type Token, Tokenizer, type Tokens } from "marked";
import { CopyButton } from "../components/copy-button.tsx";
import { inOrder } from "../components/prose.tsx";

/**
 * Renders the markdown of a model's text without running or loading anything that the model wrote. HTML is shown as
 * text, images become links, and only links to web and mail addresses are links.
 */
export default function Markdown({ text: latest }: { readonly text: string }) {
  const { text, blocks } = useRead(latest);
  if (blocks === undefined) return <p className="wrap-anywhere whitespace-pre-wrap">{text}</p>;
  return <div className="space-y-3 wrap-anywhere">{inOrder(blocks, (token) => blockOf(token))}</div>;
}

/** Minimum interval between two parses of a growing text. Each parse starts at the beginning of the text. */
const INTERVAL_MS = 100;
/** The interval is at least PAUSES times the duration of the last parse, so that most of the time is left for other work. */
const PAUSES = 5;

/**
 * Returns the blocks of a text that may grow with each render, and the text that they were parsed from, which may be an
 * earlier one.
 */
function useRead(latest: string): { readonly text: string; readonly blocks: readonly Token[] | undefined } {
  const [text, setText] = useState(latest);
  const { blocks, againMs } = useMemo(() => read(text), [text]);
  useEffect(() => {
    const timer = setTimeout(() => setText(latest), Math.max(againMs - performance.now(), 0));
    return () => clearTimeout(timer);
  }, [latest, againMs]);
  return { text, blocks };
}

interface ReadText {
  /** Undefined for a text beyond the limits, which is shown as plain text. */
  readonly blocks: readonly Token[] | undefined;
  /** Earliest time of the next parse, by `performance.now`. */
  readonly againMs: number;
}

function read(text: string): ReadText {
  const beganMs = performance.now();
  let blocks: readonly Token[] | undefined;
  try {
    blocks = new BoundedLexer().lex(text);
  } catch {
    blocks = undefined;
  }
  const endMs = performance.now();
  return { blocks, againMs: endMs + Math.max(INTERVAL_MS, PAUSES * (endMs - beganMs)) };
}

/** Limits above which a text is shown as plain text: a model can write markdown that takes minutes to parse or to render. */
const MAX_BLOCKS = 5_000;
const MAX_DEPTH = 50;
/**
 * Maximum characters of a block whose emphasis and links are parsed, and maximum sum of their squares over all blocks.
 * The time of that parse grows with the square.
 */
const MAX_BLOCK_CHARS = 4_000;
const MAX_SQUARES = 1.5e8;

/**
 * Throws for a text with more than MAX_BLOCKS blocks or MAX_DEPTH levels. Emphasis and links of longer blocks than
 * MAX_BLOCK_CHARS stay plain text.
 */
class BoundedLexer extends Lexer {
  #blocks = 0;
  #squares = 0;

  constructor() {
    super({ gfm: true, breaks: true, tokenizer: new BoundedTokenizer() });
  }

  /** Called for each block with text, and for each cell of a table. */
  override inline(text: string, tokens: Token[] = []): Token[] {
    this.#blocks += 1;
    if (this.#blocks > MAX_BLOCKS) throw new Error("too many blocks");
    return super.inline(text, tokens);
  }

  override inlineTokens(text: string, tokens: Token[] = []): Token[] {
    this.#squares += text.length ** 2;
    if (text.length <= MAX_BLOCK_CHARS && this.#squares <= MAX_SQUARES) return super.inlineTokens(text, tokens);
    tokens.push({ type: "text", raw: text, text });
    return tokens;
  }
}

class BoundedTokenizer extends Tokenizer {
  #depth = 0;

  override blockquote(text: string): Tokens.Blockquote | undefined {
    return this.#within(() => super.blockquote(text));
  }

  override list(text: string): Tokens.List | undefined {
    return this.#within(() => super.list(text));
  }

  #within<T>(readBlock: () => T): T {
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) throw new Error("too many blocks within each other");
    const block = readBlock();
    this.#depth -= 1;
    return block;
  }
}

/** Memoized by its text, so that a growing answer renders only its last block again. */
const Block = memo(
  ({ token }: { readonly token: Token }) => renderBlock(token as MarkedToken),
  (before, after) => before.token.type === after.token.type && before.token.raw === after.token.raw,
);

const blockOf = (token: Token): ReactNode => <Block token={token} />;

const HEADINGS = ["text-lg", "text-base", "text-[0.9375rem]"] as const;

function renderBlock(token: MarkedToken): ReactNode {
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "hr":
      return <hr className="border-line" />;
    case "heading":
      return (
        <p className={`font-semibold ${HEADINGS[token.depth - 1] ?? "text-[0.9375rem]"}`}>{inline(token.tokens)}</p>
      );
    case "code":
      return <CodeBlock code={token} />;
    case "blockquote":
      return (
        <blockquote className="space-y-3 border-l-2 border-line pl-4 text-muted">
          {inOrder(token.tokens, blockOf)}
        </blockquote>
      );
    case "list":
      return <List list={token} />;
    case "table":
      return <Table table={token} />;
    case "html":
      return <p className="whitespace-pre-wrap">{token.raw}</p>;
    case "paragraph":
    case "text":
      return <p className="whitespace-pre-wrap">{inline(token.tokens ?? [token])}</p>;
    default:
      return inline([token]);
  }
}

function inline(tokens: readonly Token[]): ReactNode {
  return inOrder(tokens, (token) => renderInline(token as MarkedToken));
}

function renderInline(token: MarkedToken): ReactNode {
  switch (token.type) {
    case "strong":
      return <strong className="font-semibold">{inline(token.tokens)}</strong>;
    case "em":
      return <em>{inline(token.tokens)}</em>;
    case "del":
      return <del>{inline(token.tokens)}</del>;
    case "codespan":
      return <code className="rounded bg-sunken px-1 py-0.5 font-mono text-[0.85em]">{token.text}</code>;
    case "br":
      return "\n";
    case "link":
      return <Address href={token.href}>{inline(token.tokens)}</Address>;
    case "image":
      return <Address href={token.href}>Image: {token.text || token.href}</Address>;
    case "text":
      return token.tokens === undefined ? token.text : inline(token.tokens);
    case "escape":
      return token.text;
    case "checkbox":
      return token.checked ? "☑ " : "☐ ";
    default:
      return token.raw;
  }
}

function Address({ href, children }: { readonly href: string; readonly children: ReactNode }) {
  if (!/^(https?:\/\/|mailto:)/i.test(href)) return children;
  return (
    <a
      href={href}
      title={href}
      target="_blank"
      rel="noopener noreferrer nofollow"
      className="text-accent underline underline-offset-2"
    >
      {children}
    </a>
  );
}

function CodeBlock({ code: { lang, text } }: { readonly code: Tokens.Code }) {
  const language = /^[\w+#.-]{1,30}/.exec(lang ?? "")?.[0] ?? "Code";
  return (
    <div className="overflow-hidden rounded-lg border border-line">
      <div className="flex min-h-9 items-center justify-between gap-3 border-b border-line bg-sunken py-1 pr-1 pl-3">
        <span className="font-mono text-xs text-muted">{language}</span>
        <CopyButton text={text} what={`the ${language === "Code" ? "code" : `${language} code`}`} />
      </div>
      {/* Focusable, because a scrollable region must be reachable by keyboard. */}
      <pre tabIndex={0} className="overflow-x-auto p-3 font-mono text-[0.8125rem] leading-relaxed whitespace-pre">
        <code>{text}</code>
      </pre>
    </div>
  );
}

function List({ list: { ordered, start, items } }: { readonly list: Tokens.List }) {
  const entries = inOrder(items, ({ tokens }) => (
    <li className="space-y-1 pl-1">{inOrder(tokens, (token) => listed(token as MarkedToken))}</li>
  ));
  if (!ordered) return <ul className="list-disc space-y-1 pl-6">{entries}</ul>;
  return (
    <ol start={start === "" ? 1 : start} className="list-decimal space-y-1 pl-6">
      {entries}
    </ol>
  );
}

/** Renders a token of a list item. A checkbox is inline, on the line of the text after it. */
function listed(token: MarkedToken): ReactNode {
  return token.type === "checkbox" ? renderInline(token) : blockOf(token);
}

function Table({ table: { header, rows } }: { readonly table: Tokens.Table }) {
  const cells = (row: readonly Tokens.TableCell[], Cell: "th" | "td"): ReactNode =>
    inOrder(row, ({ tokens, align }) => (
      <Cell
        className={`px-3 py-1.5 ${align === "right" ? "text-right" : align === "center" ? "text-center" : "text-left"}`}
      >
        {inline(tokens)}
      </Cell>
    ));
  return (
    <div tabIndex={0} className="overflow-x-auto rounded-lg border border-line">
      <table className="w-full text-sm tabular-nums">
        <thead className="border-b border-line">
          <tr>{cells(header, "th")}</tr>
        </thead>
        <tbody className="divide-y divide-line">
          {inOrder(rows, (row) => (
            <tr>{cells(row, "td")}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
