import { useEffect, useRef, useState } from "react";

/** Returns the anchor of a section: `timeouts-retries-and-overload`. */
export function anchorOf(title: string): string {
  return title.toLowerCase().replaceAll(/[^a-z]+/g, "-");
}

/** Distance from the top of the window, in pixels, within which a section begins that is being read. */
const READ_WITHIN = 140;

/** Links to the sections of a long page, with that of the section in view marked. */
export function SectionLinks({ titles }: { readonly titles: readonly string[] }) {
  const current = useSectionInView(titles);
  const links = useRef<HTMLElement>(null);
  // On phones the links are one line, of which a part is in view.
  useEffect(() => {
    const link = links.current?.querySelector<HTMLElement>(`[href="#${anchorOf(current ?? "")}"]`);
    if (link) links.current?.scrollTo({ left: link.offsetLeft - links.current.offsetLeft - 16 });
  }, [current]);
  return (
    <nav ref={links} aria-label="Sections" className="mt-2 max-lg:-mx-1 max-lg:overflow-x-auto lg:mt-4">
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
