/** Text of an entry, read-only. */
export function Code({ label, text }: { readonly label: string; readonly text: string }) {
  return (
    <pre
      aria-label={label}
      role="region"
      tabIndex={0}
      className="max-h-96 overflow-auto rounded-lg border border-line bg-sunken px-4 py-3 font-mono text-[0.8125rem]"
    >
      {text}
    </pre>
  );
}
