import { type KeyboardEvent, useId, useRef, useSyncExternalStore } from "react";
import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { formatFromNow, formatPreciseMoment } from "../format/time.ts";

/** Distance of the hint from its text and from the edges of the window, in pixels. */
const GAP = 8;

/** A time relative to now, such as "3 minutes ago", updated as time passes. Hover and focus show the exact time. */
export function RelativeTime({ time }: { readonly time: Timestamp }) {
  useSyncExternalStore(subscribe, currentTick);
  const id = useId();
  const hint = useRef<HTMLSpanElement>(null);
  const show = ({ currentTarget: text }: { readonly currentTarget: HTMLElement }): void => {
    const shown = hint.current!;
    shown.showPopover();
    const { left, top, bottom } = text.getBoundingClientRect();
    const above = top - shown.offsetHeight - GAP;
    shown.style.left = `${Math.max(GAP, Math.min(left, document.documentElement.clientWidth - shown.offsetWidth - GAP))}px`;
    shown.style.top = `${above < GAP ? bottom + GAP : above}px`;
  };
  const hide = (): void => hint.current?.hidePopover();
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- they show a hint, and do nothing
    <time
      dateTime={timestampDate(time).toISOString()}
      tabIndex={0}
      aria-describedby={id}
      className="rounded-sm decoration-dotted underline-offset-3 hover:underline"
      onMouseEnter={show}
      onMouseLeave={hide}
      onFocus={show}
      onBlur={hide}
      onKeyDown={(event: KeyboardEvent) => event.key === "Escape" && hide()}
    >
      {formatFromNow(time)}
      {/* In the top layer, because tables clip content that is outside of them. */}
      <span
        ref={hint}
        id={id}
        role="tooltip"
        popover="manual"
        className="pointer-events-none fixed inset-auto m-0 rounded-lg bg-ink px-2.5 py-1.5 text-xs font-normal text-canvas tabular-nums shadow-lg"
      >
        {formatPreciseMoment(time)}
      </span>
    </time>
  );
}

const TICK_MS = 30_000;

function subscribe(changed: () => void): () => void {
  const timer = setInterval(changed, TICK_MS);
  return () => clearInterval(timer);
}

function currentTick(): number {
  return Math.floor(Date.now() / TICK_MS);
}
