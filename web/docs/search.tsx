import { useEffect, useId, useMemo, useRef, useState } from "react";
import { findEntries, type Entry } from "./entries.ts";

/** Finds fields, errors and headers of this page by their names and what is said of them. */
export function Search({ entries }: { readonly entries: readonly Entry[] }) {
  const [sought, setSought] = useState("");
  const input = useRef<HTMLInputElement>(null);
  const id = useId();
  const found = useMemo(() => findEntries(entries, sought), [entries, sought]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const isTyping = event.target instanceof Element && event.target.closest("input, textarea, select") !== null;
      if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      input.current?.focus();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
  const isOpen = sought.trim() !== "";
  return (
    <search className="relative block print:hidden">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (found[0] === undefined) return;
          location.hash = found[0].anchor;
          setSought("");
        }}
      >
        <label htmlFor={id} className="block text-sm font-medium">
          Search this page
        </label>
        <input
          ref={input}
          id={id}
          type="search"
          autoComplete="off"
          placeholder="A field, an error, a header"
          aria-keyshortcuts="/"
          value={sought}
          onChange={(event) => setSought(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Escape") setSought("");
          }}
          className="mt-1.5 block min-h-11 w-full rounded-lg border border-edge bg-surface px-3 py-2 text-base placeholder:text-muted sm:min-h-10 sm:text-[0.9375rem]"
        />
      </form>
      <p role="status" className="sr-only">
        {isOpen && (found.length === 0 ? "Nothing found" : `${found.length} found`)}
      </p>
      {isOpen && (
        <div className="absolute inset-x-0 top-full z-10 mt-1 max-h-[60dvh] overflow-y-auto rounded-xl border border-line bg-surface p-1.5 shadow-xl lg:right-auto lg:w-96">
          {found.length === 0 ? (
            <p className="px-3 py-2 text-sm text-muted">Nothing on this page is called so.</p>
          ) : (
            <ul aria-label="Found">
              {found.map(({ anchor, name, kind }) => (
                <li key={anchor}>
                  <a
                    href={`#${anchor}`}
                    onClick={() => setSought("")}
                    className="flex items-baseline justify-between gap-3 rounded-lg px-3 py-2 text-sm hover:bg-sunken"
                  >
                    <span className="min-w-0 wrap-anywhere">{name}</span>
                    <span className="shrink-0 text-xs text-muted">{kind}</span>
                  </a>
                </li>
              ))}
            </ul>
          )}
        </div>
      )}
    </search>
  );
}
