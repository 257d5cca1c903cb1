use std::env;

use parley_example::{
    ask, connect,
    v1::{completion_chunk::Event, part_delta::Content},
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = env::var("PARLEY_GRPC").unwrap_or("127.0.0.1:50051".into());
    let mut completions = connect(&address, &env::var("PARLEY_API_KEY")?)?;
    let mut chunks = completions.stream(ask("alpha-haiku-4.5", "Tell me about tides.")).await?.into_inner();
    while let Some(chunk) = chunks.message().await? {
        if let Some(Event::PartDelta(delta)) = chunk.event
            && let Some(Content::Text(text)) = delta.content
        {
            print!("{text}");
        }
    }
    println!();
    Ok(())
}
