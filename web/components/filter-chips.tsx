import { useEffect, useRef } from "react";
import { X } from "lucide-react";
import { Button } from "./button.tsx";
import type { Choice } from "./choose.tsx";

/** An active filter. */
export interface FilterChip {
  /** Name of the filter, which is unique: `Model`. */
  readonly label: string;
  /** The value in words. */
  readonly value: string;
  readonly onRemove: () => void;
}

interface FilterChipsProps {
  readonly chips: readonly FilterChip[];
  /** Removes all filters. */
  readonly onClear: () => void;
}

/**
 * The active filters of a list, each with a button that removes it. Screen readers hear of changes; the focus of a removed filter
 * goes to its neighbour.
 */
export function FilterChips({ chips, onClear }: FilterChipsProps) {
  const group = useRef<HTMLDivElement>(null);
  /** Place of a filter that was removed while it had the focus. */
  const removed = useRef<number>(undefined);
  const names = chips.map(({ label, value }) => `${label}: ${value}`);
  const text = names.join(", ");
  useEffect(() => {
    if (removed.current === undefined) return;
    const left = group.current!.querySelectorAll<HTMLElement>("li button");
    (left[Math.min(removed.current, left.length - 1)] ?? group.current!).focus();
    removed.current = undefined;
  });
  return (
    <div
      ref={group}
      role="group"
      aria-label="Active filters"
      tabIndex={-1}
      className={chips.length === 0 ? "sr-only" : "flex flex-wrap items-center gap-1.5 outline-none"}
    >
      <p role="status" className="sr-only">
        {chips.length === 0 ? "No filters" : `Filters: ${text}`}
      </p>
      <ul className="contents">
        {chips.map(({ label, value, onRemove }, index) => (
          <li key={label} className="flex max-w-full min-w-0">
            <button
              type="button"
              title={names[index]}
              className="flex min-h-8 max-w-full min-w-0 items-center gap-1.5 rounded-full border border-line bg-surface py-0.5 pr-2 pl-3 text-sm hover:bg-sunken lg:min-h-7"
              onClick={() => {
                removed.current = index;
                onRemove();
              }}
            >
              <span className="sr-only">Remove filter </span>
              <span className="text-muted">{label}: </span>
              <bdi className="max-w-60 truncate font-medium">{value}</bdi>
              <X aria-hidden className="size-4 shrink-0 text-muted" />
            </button>
          </li>
        ))}
      </ul>
      {chips.length > 0 && (
        <Button
          look="quiet"
          size="small"
          onClick={() => {
            removed.current = 0;
            onClear();
          }}
        >
          Clear all
        </Button>
      )}
    </div>
  );
}

/** The chip of a chosen value, with its name among the choices; none for an empty value. */
export function chipOf(
  label: string,
  value: string,
  { choices, onRemove }: { readonly choices?: readonly Choice[]; readonly onRemove: () => void },
): readonly FilterChip[] {
  if (value === "") return [];
  return [{ label, value: choices?.find(([choice]) => choice === value)?.[1] ?? value, onRemove }];
}
