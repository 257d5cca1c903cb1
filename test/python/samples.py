"""A picture for models, and what tests ask them for: an answer with a structure, and a call of a tool."""

import base64
from enum import StrEnum

from pydantic import BaseModel, Field

RED_PIXEL_BASE64 = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="
)
RED_PIXEL = base64.b64decode(RED_PIXEL_BASE64)
RED_PIXEL_URL = f"data:image/png;base64,{RED_PIXEL_BASE64}"


class Light(StrEnum):
    FIXED = "fixed"
    FLASHING = "flashing"


class Keeper(BaseModel):
    name: str
    retired: bool


class Lighthouse(BaseModel):
    """A tower with a light."""

    name: str
    height: float
    light: Light
    keepers: list[Keeper]
    fog_horn: str | None


class GetWeather(BaseModel):
    """The weather in a town."""

    town: str
    days: int = Field(ge=2, le=9)


async def get_weather(town: str, days: int) -> str:
    """The weather in a town."""
    return f"Fog for {days} days in {town}"
