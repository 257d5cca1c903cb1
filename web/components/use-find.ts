import { useState } from "react";
import { useSearchParams } from "wouter";

/** Text of a page's search: the query parameter `find`, until the reader changes the text. */
export function useFind(): readonly [text: string, setText: (text: string) => void] {
  const linked = useSearchParams()[0].get("find") ?? "";
  const [state, setState] = useState({ linked, text: linked });
  // A link to the same page with another text.
  if (state.linked !== linked) setState({ linked, text: linked });
  return [state.text, (text) => setState({ linked, text })];
}
