export function History(props: { path: string }) {
  return <p class="hint">{props.path}</p>;
}
