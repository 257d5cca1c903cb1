import { type ReactNode, useLayoutEffect, useRef } from "react";
import { Link, useLocation } from "wouter";
import { useMay, usePermissions } from "../api/session.ts";
import { Empty, Page } from "../components/page.tsx";
import { ADMIN_PLACES } from "../layout/places.ts";

interface AdministrationProps {
  readonly title: string;
  readonly description: string;
  readonly actions?: ReactNode;
  /** Renders the page for administrators. A function, so that its queries do not run for others. */
  readonly children: () => ReactNode;
}

/** Layout of an administration page, with the navigation to the others. */
export function Administration({ title, description, actions, children }: AdministrationProps) {
  const [here] = useLocation();
  const permissions = usePermissions();
  const tabs = useRef<HTMLElement>(null);
  // A phone shows only some of the links. Each page has its own list of them.
  useLayoutEffect(() => {
    tabs.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  }, []);
  const [, , needed] =
    ADMIN_PLACES.findLast(([path]) => here === path || here.startsWith(`${path}/`)) ?? ADMIN_PLACES[0];
  if (!useMay(needed)) {
    return (
      <Page title={title}>
        <Empty title="Administrators only">
          Your role does not allow this page. Ask an administrator if you need a change.
        </Empty>
      </Page>
    );
  }
  return (
    <Page title={title} description={description} actions={actions} isWide>
      <nav ref={tabs} aria-label="Administration" className="mb-4 overflow-x-auto border-b border-line">
        <ul className="flex w-max">
          {ADMIN_PLACES.filter(([, , needs]) => permissions.includes(needs)).map(([path, name]) => (
            <li key={path}>
              <Link
                href={path}
                aria-current={here === path ? "page" : here.startsWith(`${path}/`) ? true : undefined}
                className="flex min-h-10 items-center border-b-2 border-transparent px-2.5 text-sm -outline-offset-2! xl:px-3 text-muted hover:text-ink aria-[current]:border-accent aria-[current]:font-medium aria-[current]:text-ink"
              >
                {name}
              </Link>
            </li>
          ))}
        </ul>
      </nav>
      {children()}
    </Page>
  );
}
