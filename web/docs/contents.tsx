/** A place in the table of contents. */
export interface Place {
  readonly id: string;
  readonly title: string;
  readonly inside?: readonly Place[];
}

/** Where everything is. */
export function Contents({ places }: { readonly places: readonly Place[] }) {
  return (
    <ul className="space-y-0.5">
      {places.map(({ id, title, inside = [] }) => (
        <li key={id}>
          <PlaceLink id={id} title={title} className="font-medium" />
          {inside.length > 0 && (
            <ul className="mb-1 ml-3 border-l border-line pl-1.5">
              {inside.map((place) => (
                <li key={place.id}>
                  <PlaceLink {...place} className="" />
                </li>
              ))}
            </ul>
          )}
        </li>
      ))}
    </ul>
  );
}

function PlaceLink({ id, title, className }: Place & { readonly className: string }) {
  return (
    <a
      href={`#${id}`}
      className={`flex min-h-8 items-center rounded-lg px-2.5 text-sm text-muted hover:bg-sunken hover:text-ink ${className}`}
    >
      {title}
    </a>
  );
}
