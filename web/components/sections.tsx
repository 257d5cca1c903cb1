import { type ReactNode, useEffect, useRef, useState } from "react";
import { anchorOf } from "./panel.tsx";

interface SectionsProps {
  /** Titles of the page's panels, in their order. */
  readonly titles: readonly string[];
  /** Search field above the links. */
  readonly search?: ReactNode;
  /** The panels. */
  readonly children: ReactNode;
}

/** A long page of panels, with links to them beside it, on phones above it. */
export function Sections({ titles, search, children }: SectionsProps) {
  // The browser goes to the anchor of an address before the panels are there.
  useEffect(() => {
    if (location.hash !== "") location.replace(location.hash);
  }, []);
  return (
    <div className="gap-8 lg:grid lg:grid-cols-[13rem_minmax(0,1fr)] lg:items-start">
      <div className="sticky top-0 z-10 -mx-4 bg-canvas px-4 py-2 sm:-mx-8 sm:px-8 lg:top-4 lg:mx-0 lg:p-0">
        {search}
        <SectionLinks titles={titles} />
      </div>
      <div className="min-w-0 space-y-5 max-lg:mt-3">{children}</div>
    </div>
  );
}

/** Distance from the top of the window, in pixels, within which a section begins that is being read. */
const READ_WITHIN = 140;

/** Links to the sections, with that of the section in view marked. */
function SectionLinks({ titles }: { readonly titles: readonly string[] }) {
  const current = useSectionInView(titles);
  const links = useRef<HTMLElement>(null);
  // On phones the links are one line, of which a part is in view.
  useEffect(() => {
    const link = links.current?.querySelector<HTMLElement>(`[href="#${anchorOf(current ?? "")}"]`);
    if (link) links.current?.scrollTo({ left: link.offsetLeft - links.current.offsetLeft - 16 });
  }, [current]);
  return (
    <nav
      ref={links}
      aria-label="Sections"
      className="not-first:mt-2 max-lg:-mx-1 max-lg:overflow-x-auto lg:not-first:mt-4"
    >
      <ul className="flex gap-x-1 text-sm lg:block lg:space-y-0.5">
        {titles.map((title) => (
          <li key={title}>
            <a
              href={`#${anchorOf(title)}`}
              aria-current={title === current ? "true" : undefined}
              className="block rounded-md px-2 py-1 text-muted hover:bg-sunken hover:text-ink aria-[current]:bg-accent-soft aria-[current]:font-medium aria-[current]:text-accent-strong max-lg:whitespace-nowrap lg:px-3"
            >
              {title}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function useSectionInView(titles: readonly string[]): string | undefined {
  const [current, setCurrent] = useState(titles[0]);
  const all = titles.join("\n");
  useEffect(() => {
    const look = (): void => setCurrent(sectionInView(all.split("\n")));
    look();
    addEventListener("scroll", look, { passive: true });
    return () => removeEventListener("scroll", look);
  }, [all]);
  return current;
}

/** The last section that begins near the top, or the one a link has led to, which may be too near the end of the page for that. */
function sectionInView(titles: readonly string[]): string | undefined {
  const boxes = titles.map((title) => ({
    title,
    box: document.getElementById(anchorOf(title))?.getBoundingClientRect(),
  }));
  const linked = boxes.find(({ title }) => `#${anchorOf(title)}` === location.hash);
  if (linked?.box !== undefined && linked.box.top >= 0 && linked.box.bottom <= innerHeight) return linked.title;
  if (scrollY > 0 && scrollY + innerHeight >= document.documentElement.scrollHeight - 2) return titles.at(-1);
  return boxes.findLast(({ box }) => box !== undefined && box.top < READ_WITHIN)?.title ?? titles[0];
}
