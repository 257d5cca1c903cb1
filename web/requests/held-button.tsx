import type { RefObject } from "react";
import { Button } from "../components/button.tsx";
import { formatCount } from "../format/number.ts";

interface HeldButtonProps {
  readonly count: number;
  readonly rows: RefObject<HTMLElement | null>;
  readonly onShow: () => void;
}

/** Button that shows the new requests held back while the user reads. */
export function HeldButton({ count, rows, onShow }: HeldButtonProps) {
  const show = (): void => {
    onShow();
    // The button disappears, so the focus moves to the newest requests.
    rows.current?.focus({ preventScroll: true });
    const isMotionReduced = matchMedia("(prefers-reduced-motion: reduce)").matches;
    rows.current?.scrollIntoView({ block: "start", behavior: isMotionReduced ? "auto" : "smooth" });
  };
  return (
    <div className="sticky top-3 z-10 flex h-0 justify-center">
      <Button size="small" className="shadow-lg" onClick={show}>
        <span aria-hidden>↑</span> {formatCount(count)} new
      </Button>
    </div>
  );
}
