import type { RefObject } from "react";
import { Button } from "../components/button.tsx";
import { formatCount } from "../format/number.ts";

interface HeldButtonProps {
  readonly count: number;
  readonly rows: RefObject<HTMLElement | null>;
  readonly onShow: () => void;
}

/** New requests wait above what somebody reads. */
export function HeldButton({ count, rows, onShow }: HeldButtonProps) {
  const show = (): void => {
    onShow();
    // The button is gone then; the keyboard goes on with the newest.
    rows.current?.focus({ preventScroll: true });
    const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    rows.current?.scrollIntoView({ block: "start", behavior: isCalm ? "auto" : "smooth" });
  };
  return (
    <div className="sticky top-3 z-10 flex h-0 justify-center">
      <Button size="small" className="shadow-lg" onClick={show}>
        <span aria-hidden>↑</span> {formatCount(count)} new
      </Button>
    </div>
  );
}
