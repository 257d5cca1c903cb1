import { useEffect, useMemo } from "react";
import { Link } from "wouter";
import reference from "virtual:reference";
import { Mark } from "../components/mark.tsx";
import { Segments } from "../components/segments.tsx";
import { Title } from "../components/page.tsx";
import { PATHS } from "../paths.ts";
import { ThemeSwitch } from "../layout/theme-switch.tsx";
import { Contents, type Place } from "./contents.tsx";
import { entriesOf } from "./entries.ts";
import { examplesFor } from "./examples.ts";
import { PARTS } from "./parts.tsx";
import { Search } from "./search.tsx";
import { SIDES, useSides } from "./sides.ts";
import { Section } from "./section.tsx";
import { TopicView } from "./topic-view.tsx";

const topics = new Map(reference.topics.map((topic) => [topic.id, topic]));

const PLACES = PARTS.map(({ id, title, topics: ids = [] }): Place => {
  return { id, title, inside: ids.map((each) => ({ id: each, title: topics.get(each)!.title })) };
});

/** The API reference, for everybody who has its address. */
export default function Docs() {
  useEffect(goToFragment, []);
  const [sides, chooseSides] = useSides();
  const entries = useMemo(() => entriesOf(reference, [...PLACES, ...PLACES.flatMap(({ inside = [] }) => inside)]), []);
  const material = { reference, origin: location.origin, examples: examplesFor(location) };
  return (
    <div data-sides={sides} className="group/docs mx-auto max-w-[90rem] lg:grid lg:grid-cols-[17rem_1fr] print:block">
      <a
        href="#main"
        className="sr-only focus:not-sr-only focus:fixed focus:top-3 focus:left-3 focus:z-10 focus:rounded-lg focus:bg-accent focus:px-4 focus:py-2 focus:text-on-accent"
      >
        Skip to the reference
      </a>
      <header className="border-b border-line px-4 py-4 lg:border-r lg:border-b-0 lg:px-5 lg:py-6 print:hidden">
        <div className="flex flex-col gap-5 lg:sticky lg:top-0 lg:-my-6 lg:h-dvh lg:py-6">
          <div className="flex items-center justify-between gap-4">
            <Mark />
            <Link href={PATHS.home} className="text-sm font-medium text-accent underline underline-offset-2">
              Dashboard
            </Link>
          </div>
          <Search entries={entries} />
          <Segments legend="Shown" choices={SIDES} value={sides} onChange={chooseSides} />
          <details className="rounded-lg border border-line lg:hidden">
            <summary className="flex min-h-11 items-center px-4 text-[0.9375rem] font-medium">Contents</summary>
            <nav aria-label="Contents" className="border-t border-line p-2">
              <Contents places={PLACES} />
            </nav>
          </details>
          <nav aria-label="Contents" className="-mx-2.5 hidden min-h-0 flex-1 overflow-y-auto px-2.5 lg:block">
            <Contents places={PLACES} />
          </nav>
          <ThemeSwitch />
        </div>
      </header>
      <main id="main" tabIndex={-1} className="min-w-0 px-4 py-8 sm:px-8 lg:py-10 print:p-0">
        <Title className="text-3xl font-semibold tracking-tight">API reference</Title>
        <div className="text-[0.9375rem] leading-relaxed">
          {PARTS.map(({ id, title, topics: ids = [], render }) => (
            <Section key={id} id={id} title={title}>
              {render(material)}
              {ids.map((each) => (
                <TopicView key={each} topic={topics.get(each)!} />
              ))}
            </Section>
          ))}
        </div>
      </main>
    </div>
  );
}

/** Goes to what the address names: the browser looked for it before the page was there. */
function goToFragment(): void {
  if (location.hash.length > 1) location.replace(location.hash);
}
