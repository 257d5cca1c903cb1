import { useEffect } from "react";
import type { Place } from "./places.ts";

/** What a shortcut opens over the page. */
export type Overlay = "palette" | "shortcuts";

interface ShortcutOptions {
  readonly places: readonly Place[];
  readonly go: (place: Place) => void;
  readonly open: (overlay: Overlay) => void;
}

/** Time for the letter after `g`. */
const SEQUENCE_MS = 1_500;

/** Listens for the keyboard shortcuts of all pages. None of them works over a dialog, which may show a secret once. */
export function useShortcuts({ places, go, open }: ShortcutOptions): void {
  useEffect(() => {
    let goUntilMs = 0;
    const onKey = (event: KeyboardEvent): void => {
      const { key, target } = event;
      if (event.defaultPrevented || event.altKey || document.querySelector("[role=dialog]") !== null) return;
      if (event.ctrlKey || event.metaKey) {
        if (key.toLowerCase() !== "k" || event.shiftKey) return;
        event.preventDefault();
        return open("palette");
      }
      if (!readSingleKeys() || isTyping(target)) return;
      const place = event.timeStamp < goUntilMs ? places.find(({ letter }) => letter === key) : undefined;
      goUntilMs = key === "g" ? event.timeStamp + SEQUENCE_MS : 0;
      if (place !== undefined) go(place);
      else if (key === "?") open("shortcuts");
      else if (key === "/") focusSearch(event);
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [places, go, open]);
}

/** Whether the element handles letter keys itself: a text field, a select, a list or a menu. */
function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof Element &&
    target.closest(
      "input:not([type=checkbox], [type=radio], [type=range]), textarea, select, [contenteditable], [role=listbox], [role=menu]",
    ) !== null
  );
}

/** Goes to the search of the page, if it has one. */
function focusSearch(event: KeyboardEvent): void {
  const field = document.querySelector<HTMLElement>("main input[type=search]");
  if (field === null) return;
  event.preventDefault();
  field.focus();
}

const STORED_AS = "parley-single-keys";

/** Whether shortcuts of single keys are on. Speech input and some keyboards press keys by accident (WCAG 2.1.4). */
export function readSingleKeys(): boolean {
  try {
    return localStorage.getItem(STORED_AS) !== "off";
  } catch {
    return true;
  }
}

/** Turns shortcuts of single keys on or off in this browser. */
export function storeSingleKeys(isOn: boolean): void {
  try {
    if (isOn) localStorage.removeItem(STORED_AS);
    else localStorage.setItem(STORED_AS, "off");
  } catch {
    // Storage is not available: they stay on.
  }
}

/** Name of the key for commands on the reader's keyboard. */
export const COMMAND_KEY = /Mac|iPhone|iPad/.test(navigator.userAgent) ? "⌘" : "Ctrl";
