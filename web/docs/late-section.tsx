import { useEffect, useRef, useState } from "react";
import { flushSync } from "react-dom";
import { type GroupModel, type IMenuItem, OperationItem, OperationModel, Section, SectionItem } from "redoc";

/**
 * A section of the reference: empty until it comes near the viewport or the browser is idle. All sections at once would
 * block the page for seconds; one after the other they leave time for input, and the browser's own search soon has them all.
 * `late-section` in docs.css keeps the browser from laying out those that are out of sight.
 */
export function LateSection({ item }: { readonly item: IMenuItem }) {
  const [isRendered, setIsRendered] = useState(false);
  const section = useRef<HTMLDivElement>(null);
  useEffect(() => renderLater(section.current!, () => setIsRendered(true)), []);
  return (
    <Section
      id={item.id}
      data-section-id={item.id}
      $underlined={item instanceof OperationModel}
      className="late-section"
      ref={section}
    >
      {isRendered &&
        (item instanceof OperationModel ? <OperationItem item={item} /> : <SectionItem item={item as GroupModel} />)}
    </Section>
  );
}

/** Sections that are not rendered, in the order of the page. */
const waiting = new Map<Element, () => void>();

/** Renders what is in the viewport, or one height of it below or above. */
const nearby = new IntersectionObserver(
  (entries) => entries.forEach(({ target, isIntersecting }) => isIntersecting && render(target)),
  { rootMargin: "100% 0px" },
);

/** Registers a section. Returns a function that removes it. */
function renderLater(section: Element, show: () => void): () => void {
  if (waiting.size === 0) whenIdle(renderNext);
  waiting.set(section, show);
  nearby.observe(section);
  return () => forget(section);
}

function render(section: Element): void {
  const show = waiting.get(section);
  forget(section);
  show?.();
}

function forget(section: Element): void {
  waiting.delete(section);
  nearby.unobserve(section);
}

/** Renders sections until the browser has something else to do, at least one. */
function renderNext(deadline?: IdleDeadline): void {
  do {
    const [section] = waiting.keys();
    if (section === undefined) return;
    // Otherwise React would render after this loop, all of them together.
    flushSync(() => render(section));
  } while ((deadline?.timeRemaining() ?? 0) > 10);
  whenIdle(renderNext);
}

/** Calls back when the browser is idle; where it cannot tell (Safari), after other tasks. */
function whenIdle(callback: (deadline?: IdleDeadline) => void): void {
  if ("requestIdleCallback" in globalThis) requestIdleCallback(callback);
  else setTimeout(callback, 20);
}
