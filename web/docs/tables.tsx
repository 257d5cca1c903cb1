import { Anchor } from "./section.tsx";
import { Words } from "../components/prose.tsx";
import type { Download, Header } from "./reference.ts";

/** Headers, with what each says. */
export function Headers({ headers }: { readonly headers: readonly Header[] }) {
  return (
    <dl className="divide-y divide-line rounded-xl border border-line bg-surface">
      {headers.map(({ anchor, name, text, when }) => (
        <div key={anchor} id={anchor} className="scroll-mt-6 px-4 py-2.5 target:bg-accent-soft">
          <dt className="flex flex-wrap items-baseline gap-x-2.5">
            <span className="font-mono text-[0.8125rem] font-medium wrap-anywhere">
              <Anchor to={anchor}>{name}</Anchor>
            </span>
            {when !== undefined && <span className="text-xs text-muted">{when}</span>}
          </dt>
          <dd className="mt-0.5 text-sm">
            <Words text={text} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** Limits that hold for everybody, by what they limit. */
export function Facts({ facts }: { readonly facts: readonly (readonly [what: string, how: string])[] }) {
  return (
    <dl className="divide-y divide-line rounded-xl border border-line bg-surface text-sm">
      {facts.map(([what, how]) => (
        <div key={what} className="grid gap-x-4 px-4 py-2.5 sm:grid-cols-[14rem_1fr]">
          <dt className="font-medium">{what}</dt>
          <dd className="text-muted">
            <Words text={how} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

const KINDS: readonly (readonly [ending: string, what: string])[] = [
  [".proto", "A file of the contract."],
  [".binpb", "All of them as a `FileDescriptorSet` with comments, for tools such as `buf curl --schema`."],
  [".tar.gz", "All `.proto` files in one archive, to generate clients from."],
];

/** Files to take along. */
export function Downloads({ downloads }: { readonly downloads: readonly Download[] }) {
  return (
    <ul className="divide-y divide-line rounded-xl border border-line bg-surface text-sm">
      {[{ path: "/openapi.json", bytes: undefined }, ...downloads].map(({ path, bytes }) => (
        <li key={path} className="grid gap-x-4 px-4 py-2.5 sm:grid-cols-[20rem_1fr]">
          <a href={path} className="font-mono text-[0.8125rem] wrap-anywhere text-accent underline underline-offset-2">
            {path}
          </a>
          <span className="text-muted">
            <Words
              text={KINDS.find(([ending]) => path.endsWith(ending))?.[1] ?? "The HTTP API as an OpenAPI 3.1 document."}
            />
            {bytes !== undefined && ` ${Math.ceil(bytes / 1000)} kB.`}
          </span>
        </li>
      ))}
    </ul>
  );
}
