import { mergeConfig } from "vite";
import dashboard from "../vite.config.ts";
import { redocChanges } from "./redoc-changes.ts";

const noBundler = `${import.meta.dirname}/no-bundler.ts`;

// A separate build: shared React chunks would enlarge the first load of the dashboard by 4 kB.
export default mergeConfig(dashboard, {
  plugins: [redocChanges],
  resolve: {
    alias: {
      "@redocly/openapi-core/lib/bundle": noBundler,
      "@redocly/openapi-core/lib/config/config": noBundler,
    },
  },
  build: {
    // Redoc and React, in kB before compression.
    chunkSizeWarningLimit: 1200,
    rolldownOptions: { input: `${import.meta.dirname}/../docs.html` },
  },
});
