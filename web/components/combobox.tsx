import { useEffect, useId, useMemo, useRef, useState } from "react";
import { Combobox as Base } from "@base-ui/react/combobox";
import { Check, ChevronDown } from "lucide-react";
import { formatCount } from "../format/number.ts";
import { hasWords } from "../format/search.ts";
import type { Choice, ChooseProps } from "./choose.tsx";
import { BOX, describedBy, Frame } from "./field.tsx";

/** Number of matches that are listed. Further typing finds the others. */
const LISTED = 100;

/** Field for one of many choices, found by any words of their names (combobox of the ARIA practices). */
export function Combobox({
  label,
  isLabelHidden = false,
  hint,
  error,
  name,
  value,
  placeholder,
  choices,
  search,
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
  const [query, setQuery] = useState("");
  const found = useMemo(() => {
    if (search === undefined || query === "") return bestOf(choices, query);
    // Not one that the text excludes, which Enter would choose.
    return search.isPending ? bestOf(search.found, query) : search.found;
  }, [choices, search, query]);
  const find = (text: string): void => {
    setQuery(text);
    search?.onText(text);
  };
  const [isOpen, setOpen] = useState(false);
  const actions = useRef<Base.Root.Actions>(null);
  const input = useRef<HTMLInputElement>(null);
  const popup = useRef<HTMLElement>(null);
  // Base UI unmounts only its own popup.
  useEffect(() => {
    if (!isOpen) actions.current?.unmount();
  }, [isOpen]);
  return (
    <Base.Root
      items={items}
      // A cleared field selects all. If a choice is required, the selected one stays.
      value={value === "" && !hasNone ? null : value}
      onValueChange={(chosen) => (chosen !== null || hasNone) && onChange(chosen ?? "")}
      filteredItems={found.slice(0, LISTED)}
      // Until something is typed, all items are listed.
      limit={LISTED}
      // Only typed text is a query, not the name of the selected choice.
      onInputValueChange={(text, { reason }) => find(reason === "input-change" ? text : "")}
      actionsRef={actions}
      open={isOpen}
      onOpenChange={(opens) => {
        setOpen(opens);
        if (!opens) find("");
      }}
      autoHighlight
      {...(name !== undefined && { name })}
    >
      <Frame {...{ id, label, isLabelHidden, hint, error }}>
        <Base.InputGroup className="relative">
          <Base.Input
            id={id}
            ref={input}
            placeholder={placeholder ?? "Search …"}
            autoComplete="off"
            spellCheck={false}
            {...describedBy(id, hint, error)}
            className={`${BOX} truncate pr-9`}
            onFocus={(event) => event.currentTarget.select()}
            onBlur={({ currentTarget, relatedTarget: next }) => {
              const isOwn =
                currentTarget.parentElement?.contains(next) === true || popup.current?.contains(next) === true;
              if (next !== null && !isOwn) actions.current?.close();
            }}
          />
          <Base.Trigger
            aria-label={`Show choices of ${label}`}
            className="absolute inset-y-0 right-0 flex w-9 items-center justify-center rounded-lg text-muted hover:text-ink"
          >
            <ChevronDown aria-hidden className="size-4" />
          </Base.Trigger>
        </Base.InputGroup>
      </Frame>
      <Base.Portal>
        <Base.Positioner align="start" sideOffset={4} className="z-10">
          {/* Not the popup of Base UI, which hides the rest of the page from screen readers while the list is open. */}
          <section
            ref={popup}
            aria-label={`Choices of ${label}`}
            className="w-(--anchor-width) max-w-(--available-width) min-w-64 rounded-xl border border-line bg-surface text-sm text-ink shadow-xl"
          >
            <Base.Empty>
              <p className="px-4 py-3 text-muted">{search?.isPending === true ? "Searching …" : "Nothing matches."}</p>
            </Base.Empty>
            <Base.List
              // A click on the scroll bar leaves the focus where the reader types.
              onFocus={() => input.current?.focus()}
              className="max-h-[min(22rem,var(--available-height))] scroll-py-1 overflow-y-auto overscroll-contain p-1 data-empty:p-0"
            >
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
            {(found.length > LISTED || search?.isCut === true) && (
              <p className="border-t border-line px-4 py-2 text-xs text-muted">
                {search ? "There are more" : `${LISTED} of ${formatCount(found.length)}`}: search for the others.
              </p>
            )}
          </section>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}

/** Returns the choices with all words of a query: names equal to the query first, then names that begin with it. */
function bestOf(choices: readonly Choice[], query: string): readonly Choice[] {
  const start = query.trim().toLowerCase();
  if (start === "") return choices;
  const rank = ([, text]: Choice): number => {
    const lower = text.toLowerCase();
    // A name may be followed by that of its account.
    if (lower === start || lower.startsWith(`${start} `)) return 0;
    return lower.startsWith(start) ? 1 : 2;
  };
  return choices.filter(([, text]) => hasWords(text, start)).toSorted((one, other) => rank(one) - rank(other));
}
