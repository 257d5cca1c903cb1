declare module "virtual:reference" {
  const reference: import("./reference.ts").Reference;
  export default reference;
}
