"""Who plays: providers and what they want, how they respond, how strong they are."""
