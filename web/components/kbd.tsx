/** A key of the keyboard. */
export function Kbd({ children }: { readonly children: string }) {
  return (
    <kbd className="rounded border border-line bg-sunken px-1.5 py-0.5 font-sans text-xs font-medium text-muted">
      {children}
    </kbd>
  );
}
