import "../main.css";
import "./docs.css";
import { createRoot } from "react-dom/client";
import { followTheme } from "../theme.ts";
import { Reference } from "./reference.tsx";
import { sanitizeAssignedHtml } from "./trusted-html.ts";
import { type ApiDocument, forRedoc } from "./document.ts";

followTheme();
sanitizeAssignedHtml();

const root = createRoot(document.getElementById("root")!);
try {
  const response = await fetch("/openapi.json");
  if (!response.ok) throw new Error(`status ${response.status}`);
  root.render(<Reference document={forRedoc((await response.json()) as ApiDocument, location.origin)} />);
} catch (reason) {
  root.render(
    <p role="alert" className="p-8">
      The API description at /openapi.json could not be loaded ({String(reason)}). Reload the page to try again.
    </p>,
  );
}
