import { type RefObject, type UIEvent, useEffect, useLayoutEffect, useRef } from "react";

/** So close to its end, in pixels, somebody is taken to read along. */
const NEAR = 48;

/** What a box that scrolls has to be given. */
interface Follower {
  readonly ref: RefObject<HTMLDivElement | null>;
  readonly onScroll: (event: UIEvent<HTMLDivElement>) => void;
}

/** Keeps the end of a box in view while what is in it grows, as long as that is where somebody looks. */
export function useEndInView(): Follower {
  const ref = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  /** Where `showEnd` left the box. */
  const shownTop = useRef(0);
  useLayoutEffect(() => {
    const box = ref.current!;
    // The browser reports scrolling at its next frame, and more text may come before.
    const hasLeft = box.scrollTop < shownTop.current - NEAR && distanceToEnd(box) >= NEAR;
    if (hasLeft) isAtEnd.current = false;
    if (isAtEnd.current) shownTop.current = showEnd(box);
  });
  useEffect(() => {
    const box = ref.current!;
    // The keyboard of a phone takes half of the room.
    const observer = new ResizeObserver(() => {
      if (isAtEnd.current) shownTop.current = showEnd(box);
    });
    observer.observe(box);
    return () => observer.disconnect();
  }, []);
  return {
    ref,
    onScroll: ({ currentTarget }) => {
      isAtEnd.current = distanceToEnd(currentTarget) < NEAR;
    },
  };
}

/** Scrolls to the end; returns the position. */
function showEnd(box: HTMLDivElement): number {
  box.scrollTop = box.scrollHeight;
  return box.scrollTop;
}

function distanceToEnd({ scrollHeight, scrollTop, clientHeight }: HTMLDivElement): number {
  return scrollHeight - scrollTop - clientHeight;
}
