import { useEffect, useEffectEvent } from "react";
import { useSearchParams } from "wouter";
import type { LoggedRequest } from "../../gen/parley/console/v1/request_pb.js";
import { noteRequest } from "../api/requests.ts";
import { PATHS } from "../paths.ts";

/** Query parameter with the ID of the request that is shown beside the log. */
const PARAMETER = "request";

/** The request beside the log, and functions to select others of the list. */
export interface Selected {
  /** Empty when none is shown. */
  readonly id: string;
  readonly close: () => void;
  /** Undefined at the ends of the list, and for a request that is not in it. */
  readonly previous: (() => void) | undefined;
  readonly next: (() => void) | undefined;
}

/** Returns the request of the URL, so that the address of the view with the request can be shared. */
export function useSelected(requests: readonly LoggedRequest[]): Selected {
  const [search, setSearch] = useSearchParams();
  const id = search.get(PARAMETER) ?? "";
  const select = (to: string): void =>
    setSearch(
      (before) => {
        const after = new URLSearchParams(before);
        if (to === "") after.delete(PARAMETER);
        else after.set(PARAMETER, to);
        return after;
      },
      { replace: true },
    );
  const place = requests.findIndex((request) => request.id === id);
  const stepTo = (request: LoggedRequest | undefined): (() => void) | undefined =>
    request === undefined
      ? undefined
      : () => {
          noteRequest(request);
          select(request.id);
        };
  return {
    id,
    close() {
      const link = linkOf(id);
      select("");
      link?.focus();
    },
    previous: place > 0 ? stepTo(requests[place - 1]) : undefined,
    next: place === -1 ? undefined : stepTo(requests[place + 1]),
  };
}

/** Returns the address of the view with this request beside the log. `query`: that of the view. */
export function selectedPath(query: string, id: string): string {
  const search = new URLSearchParams(query);
  search.set(PARAMETER, id);
  return `${PATHS.requests}?${search.toString()}`;
}

/** The link of a request's row. */
function linkOf(id: string): HTMLElement | null {
  return document.querySelector<HTMLElement>(`[data-request="${CSS.escape(id)}"]`);
}

/** Elements in which letters and arrow keys have a meaning of their own. */
const TYPING = "input, select, textarea, [contenteditable], [role=menu], [role=dialog], [role=listbox]";

/**
 * Keys while a request is shown: J and the arrow down for the next one, K and the arrow up for the previous one, Escape closes. Arrows
 * scroll when the focus is in `scrolled`.
 */
export function useKeys({ id, close, previous, next }: Selected, scrolled: () => HTMLElement | null): void {
  const onKey = useEffectEvent((event: KeyboardEvent) => {
    const { key, target, ctrlKey, metaKey, altKey, defaultPrevented } = event;
    if (defaultPrevented || ctrlKey || metaKey || altKey) return;
    if (target instanceof Element && target.closest(TYPING) !== null) return;
    const isScrolling = target instanceof Node && scrolled()?.contains(target) === true;
    if (key.startsWith("Arrow") && isScrolling) return;
    const action =
      key === "Escape"
        ? close
        : key === "j" || key === "ArrowDown"
          ? next
          : key === "k" || key === "ArrowUp"
            ? previous
            : undefined;
    if (action === undefined) return;
    event.preventDefault();
    action();
  });
  useEffect(() => {
    if (id === "") return;
    const listen = (event: KeyboardEvent): void => onKey(event);
    document.addEventListener("keydown", listen);
    return () => document.removeEventListener("keydown", listen);
  }, [id]);
  useEffect(() => {
    if (id !== "") linkOf(id)?.closest("[role=row]")?.scrollIntoView({ block: "nearest" });
  }, [id]);
}
