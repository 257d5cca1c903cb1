import { type RefObject, type UIEvent, useCallback, useLayoutEffect, useRef } from "react";

/** Distance to the end, in pixels, within which the box follows new content. */
const NEAR = 48;

/** Props for the scrolling box. */
interface Follower {
  readonly ref: RefObject<HTMLDivElement | null>;
  readonly onScroll: (event: UIEvent<HTMLDivElement>) => void;
}

/** Keeps the end of a scrolling box in view while its content, its only child, grows, unless the user has scrolled up. */
export function useEndInView(): Follower {
  const ref = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  /** Scroll position after the last `showEnd`. */
  const shownTop = useRef(0);
  const follow = useCallback((): void => {
    const box = ref.current!;
    // Scroll events arrive with the next frame, and more text may be rendered before.
    const hasLeft = box.scrollTop < shownTop.current - NEAR && distanceToEnd(box) >= NEAR;
    if (hasLeft) isAtEnd.current = false;
    if (isAtEnd.current) shownTop.current = showEnd(box);
  }, []);
  useLayoutEffect(follow);
  // Ends with the box: an effect that ends a frame later would follow a box that is gone.
  useLayoutEffect(() => {
    const box = ref.current!;
    // The on-screen keyboard of a phone shrinks the box, and a long answer grows a moment after its text has arrived.
    const observer = new ResizeObserver(follow);
    observer.observe(box);
    observer.observe(box.firstElementChild!);
    return () => observer.disconnect();
  }, [follow]);
  return {
    ref,
    onScroll: ({ currentTarget }) => {
      isAtEnd.current = distanceToEnd(currentTarget) < NEAR;
    },
  };
}

/** Scrolls to the end. Returns the scroll position. */
function showEnd(box: HTMLDivElement): number {
  box.scrollTop = box.scrollHeight;
  return box.scrollTop;
}

function distanceToEnd({ scrollHeight, scrollTop, clientHeight }: HTMLDivElement): number {
  return scrollHeight - scrollTop - clientHeight;
}
