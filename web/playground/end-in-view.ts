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
  useLayoutEffect(() => {
    if (isAtEnd.current) showEnd(ref.current!);
  });
  useEffect(() => {
    const box = ref.current!;
    // The keyboard of a phone takes half of the room.
    const observer = new ResizeObserver(() => isAtEnd.current && showEnd(box));
    observer.observe(box);
    return () => observer.disconnect();
  }, []);
  return {
    ref,
    onScroll: ({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
      isAtEnd.current = scrollHeight - scrollTop - clientHeight < NEAR;
    },
  };
}

function showEnd(box: HTMLDivElement): void {
  box.scrollTop = box.scrollHeight;
}
