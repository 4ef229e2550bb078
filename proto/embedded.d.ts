/** What an import of a `.proto` file with `type: "text"` gives: the file's text, embedded by the bundler. */
declare module "*.proto" {
  const text: string;
  export default text;
}
