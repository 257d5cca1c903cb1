/** Classes of a menu's popup and of its items. */
export const POPUP =
  "max-h-[var(--available-height)] min-w-44 overflow-y-auto rounded-lg border border-line bg-surface p-1 text-sm text-ink shadow-lg outline-none";
export const ITEM =
  "flex min-h-9 cursor-pointer items-center gap-2 rounded-md px-2.5 outline-none select-none data-highlighted:bg-sunken";
