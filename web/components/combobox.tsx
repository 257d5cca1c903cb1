import { useId, useMemo } from "react";
import { Combobox as Base } from "@base-ui/react/combobox";
import { Check, ChevronsUpDown } from "lucide-react";
import { formatCount } from "../format/number.ts";
import { hasWords } from "../format/search.ts";
import type { Choice, ChooseProps } from "./choose.tsx";
import { BOX, describedBy, Frame } from "./field.tsx";

/** Number of matches that are listed. Further typing finds the others. */
const LISTED = 100;

/** Field for one of many choices, found by any words of their names (combobox of the ARIA practices). */
export function Combobox({
  label,
  hint,
  error,
  name,
  value,
  placeholder,
  choices,
  onChange,
}: Omit<ChooseProps, "all">) {
  const id = useId();
  const items = useMemo(
    () =>
      Base.createItems(choices, {
        getValue: ([choice]: Choice) => choice,
        getLabel: ([, text]: Choice) => text,
      }),
    [choices],
  );
  const hasNone = choices.some(([choice]) => choice === "");
  return (
    <Base.Root
      items={items}
      // A cleared field means all, or keeps what was chosen where a choice is needed.
      value={value === "" && !hasNone ? null : value}
      onValueChange={(chosen) => (chosen !== null || hasNone) && onChange(chosen ?? "")}
      filter={([, text]: Choice, query) => hasWords(text, query)}
      limit={LISTED}
      autoHighlight
      {...(name !== undefined && { name })}
    >
      <Frame {...{ id, label, hint, error }}>
        <Base.InputGroup className="relative">
          <Base.Input
            id={id}
            placeholder={placeholder ?? "Search …"}
            autoComplete="off"
            spellCheck={false}
            {...describedBy(id, hint, error)}
            className={`${BOX} truncate pr-9`}
            onFocus={(event) => event.currentTarget.select()}
          />
          <Base.Trigger
            aria-label={`Show choices of ${label}`}
            className="absolute inset-y-0 right-0 flex w-9 items-center justify-center rounded-lg text-muted hover:text-ink"
          >
            <ChevronsUpDown aria-hidden className="size-4" />
          </Base.Trigger>
        </Base.InputGroup>
      </Frame>
      <Base.Portal>
        <Base.Positioner sideOffset={4} className="z-10">
          <Base.Popup className="w-(--anchor-width) max-w-(--available-width) min-w-64 rounded-xl border border-line bg-surface text-sm text-ink shadow-xl">
            <Base.Empty>
              <p className="px-4 py-3 text-muted">Nothing matches.</p>
            </Base.Empty>
            <Base.List className="max-h-[min(22rem,var(--available-height))] scroll-py-1 overflow-y-auto overscroll-contain p-1 data-empty:p-0">
              {([choice, text]: Choice) => (
                <Base.Item
                  key={choice}
                  value={choice}
                  className="flex min-h-9 items-center gap-2 rounded-lg px-3 py-1.5 wrap-anywhere data-highlighted:bg-accent-soft data-highlighted:text-accent-strong"
                >
                  <bdi className="min-w-0 flex-1">{text}</bdi>
                  <Base.ItemIndicator>
                    <Check aria-hidden className="size-4" />
                  </Base.ItemIndicator>
                </Base.Item>
              )}
            </Base.List>
            {choices.length > LISTED && (
              <p className="border-t border-line px-4 py-2 text-xs text-muted">
                {formatCount(choices.length)} in all. The first {LISTED} matches are listed.
              </p>
            )}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}
